//! A program's tests give faults to the disks of a cache.

use std::fs;
use std::path::Path;

use afflux::{Cache, DeviceError, Faults, RequestKind};
use afflux_scratch::eventually;

const RECORD: usize = 4096;

fn cache(faults: &Faults) -> Cache {
    Cache::builder().memory(8 << 20).faults(faults).build().unwrap()
}

#[test]
fn a_kind_of_requests_fails_as_often_as_it_is_to() {
    let (place, faults) = (tempfile::tempdir().unwrap(), Faults::new());
    let cache = cache(&faults);
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[1; RECORD], 0).unwrap();
    file.sync_data().unwrap();
    let before = faults.requests(RequestKind::Flush);
    assert!(before > 0);
    faults.fail(RequestKind::Flush, 1, 2, DeviceError::Io { errno: 5 });
    let synced = [(); 4].map(|()| {
        file.write_at(&[2; RECORD], 0).unwrap();
        file.sync_data().map_err(|error| error.raw_os_error().or(Some(error.kind() as i32)))
    });
    assert_eq!(synced.map(|synced| synced.is_ok()), [true, false, false, true], "{synced:?}");
    assert_eq!(faults.requests(RequestKind::Flush), before + 4);
    faults.fail(RequestKind::Read, 0, u64::MAX, DeviceError::Io { errno: 5 });
    cache.drop_clean_pages();
    assert!(file.read_at(&mut [0; 1], 0).is_err());
    faults.heal();
    assert_eq!(file.read_at(&mut [0; 1], 0).unwrap(), 1);
}

#[test]
fn requests_that_hang_go_on_when_the_disk_heals() {
    let (place, faults) = (tempfile::tempdir().unwrap(), Faults::new());
    let cache = cache(&faults);
    let file = cache.create(place.path().join("file")).unwrap();
    faults.hang(RequestKind::Write, 0);
    file.write_at(&[1; RECORD], 0).unwrap();
    let syncs = file.clone();
    let sync = std::thread::spawn(move || syncs.sync_data());
    eventually("the write is there", || faults.requests(RequestKind::Write) == 1);
    assert_eq!(file.read_at(&mut [0; 1], 0).unwrap(), 1, "cached bytes are read as ever");
    assert!(!sync.is_finished() && fs::read(place.path().join("file")).unwrap().iter().all(|byte| *byte == 0));
    faults.heal();
    sync.join().unwrap().unwrap();
    assert_eq!(faults.requests(RequestKind::Write), 1, "the write that hung went on");
    assert_eq!(fs::read(place.path().join("file")).unwrap(), [1; RECORD]);
}

/// Appends records and syncs each, until a sync fails. Returns how many were durable.
fn append_records(path: &Path, faults: &Faults) -> usize {
    let cache = cache(faults);
    let file = cache.create(path).unwrap();
    let durable = (1..=20_u8).take_while(|record| {
        let appended = file.append(&[*record; RECORD]);
        appended.and_then(|_| file.sync_data()).is_ok()
    });
    let durable = durable.count();
    // The process is gone from here on.
    assert_eq!(cache.close().is_ok(), durable == 20);
    durable
}

#[test]
fn after_a_cut_the_file_has_what_was_synced_before_it() {
    let place = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for writes in [0, 1, 2, 7, 19, 100] {
        let (path, faults) = (place.path().join(writes.to_string()), Faults::new());
        faults.cut_off(writes);
        let durable = append_records(&path, &faults);
        let bytes = fs::read(&path).unwrap();
        for record in 0..durable {
            assert_eq!(bytes[record * RECORD..][..RECORD], [record as u8 + 1; RECORD], "{writes} writes");
        }
        seen.push(durable);
    }
    assert_eq!(seen, [0, 0, 1, 6, 18, 20], "the flush of the last write is cut off");
}
