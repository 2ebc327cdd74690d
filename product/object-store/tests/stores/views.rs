//! Views of a volume: followers, snapshots, stores that are only read.

use afflux_object::{
    Durability, Fresh, ObjectVolume, ObjectVolumeError, RecordChange, RecordDatabase, RecordsError, VolumeHeader,
    VolumeLimits, check,
};
use afflux_object_store::{Options, Store, StoreError, ViewState};
use afflux_scratch::eventually;
use bytes::Bytes;

use crate::volume::{Impatient, Volume, volume};
use crate::{open, scratch, url, wait};

fn reading(url: &str) -> Store {
    wait(Store::open_to_read(url, &Options::default())).unwrap()
}

fn write(volume: &Volume<Impatient>, byte: u8) {
    volume.write(1, 0, Bytes::from(vec![byte; 200_000])).unwrap();
    wait(volume.commit(1)).unwrap();
}

#[test]
fn a_view_moves_on_with_its_writer_and_takes_no_change() {
    let scratch = scratch();
    let store = open(&url(&scratch)).unwrap();
    let writer = volume(&store, 1);
    write(&writer, 1);
    let reader = reading(&url(&scratch));
    let (fixed, moving) =
        (wait(reader.view(&ViewState::Fixed)).unwrap(), wait(reader.view(&ViewState::Following)).unwrap());
    let clock = Impatient(reader.clock());
    let view = wait(ObjectVolume::open_view(reader.objects(), moving, clock, VolumeLimits::default())).unwrap();
    assert_eq!(wait(view.read(1, 0, 10)).unwrap(), [1; 10]);
    write(&writer, 2);
    eventually("the view shows the second version", || {
        view.forget_maps();
        wait(view.read(1, 0, 10)).unwrap() == [2; 10]
    });
    let change = RecordChange::Put(b"k".to_vec(), Vec::new());
    assert_eq!(view.records().apply(vec![change.clone()]), Err(RecordsError::ReadOnly));
    assert_eq!(fixed.apply(vec![change]), Err(RecordsError::ReadOnly));
    assert_eq!((reader.requests().puts, reader.requests().deletes), (0, 0));
    drop((view, fixed, writer, store));
    // The records themselves still have their only writer.
    assert_eq!(wait(volume(&open(&url(&scratch)).unwrap(), 2).read(1, 0, 10)).unwrap(), [2; 10]);
}

#[test]
fn scans_end_after_the_records_that_are_wanted() {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    let put = |at: u8| RecordChange::Put(vec![at], vec![at]);
    wait(records.durable(records.apply((0..100).map(put).collect()).unwrap())).unwrap();
    for most in [0, 1, 7, 99, 100, 1_000] {
        let found = wait(records.scan_first(vec![0], vec![200], Durability::Remote, most)).unwrap();
        assert_eq!(found.len(), most.min(100));
        assert!(found.iter().zip(0..).all(|((key, _), at)| *key == [at]));
    }
}

#[test]
fn nothing_is_read_where_no_volume_is() {
    let scratch = scratch();
    let error = wait(Store::open_to_read(&url(&scratch), &Options::default())).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NoVolume { .. }), "{error}");
    assert!(std::fs::read_dir(scratch.path()).unwrap().next().is_none(), "nothing was made");
    let absent = format!("{}/absent", url(&scratch));
    wait(Store::open_to_read(&absent, &Options::default())).map(drop).unwrap_err();
    assert!(!scratch.path().join("absent").exists());
}

/// A snapshot may be made between the death of a segment and the next flush.
// rule: A snapshot keeps the segments that it names.
#[test]
fn a_snapshot_keeps_what_it_names() {
    let scratch = scratch();
    let store = open(&url(&scratch)).unwrap();
    let records = wait(store.records()).unwrap();
    let fresh = Fresh { header: VolumeHeader { id: [1; 16], handle_key: [2; 16] }, verifier: 1, is_alone: true };
    let limits = VolumeLimits { dead_ns: 0, ..VolumeLimits::default() };
    let clock = Impatient(store.clock());
    let writer = wait(ObjectVolume::open(store.objects(), records, clock, limits, fresh)).unwrap();
    write(&writer, 1);
    // A flush: checkpoints show the first version from now on.
    wait(writer.records().manifest()).unwrap();
    write(&writer, 2);
    assert_eq!(wait(writer.mark_dead()).unwrap(), 1);
    wait(store.make_snapshot("late")).unwrap();
    wait(writer.delete_dead()).unwrap();
    let reader = reading(&url(&scratch));
    let view = wait(reader.view(&ViewState::Snapshot("late".to_owned()))).unwrap();
    let report = wait(check(&reader.objects(), &view, &reader.clock())).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    let (objects, clock) = (reader.objects(), Impatient(reader.clock()));
    let snapshot = wait(ObjectVolume::open_view(objects, view, clock, VolumeLimits::default())).unwrap();
    assert_eq!(wait(snapshot.read(1, 0, 10)).unwrap(), [2; 10]);
    // Later versions change nothing in it.
    write(&writer, 3);
    wait(writer.mark_dead()).unwrap();
    wait(writer.delete_dead()).unwrap();
    snapshot.forget_maps();
    assert_eq!(wait(snapshot.read(1, 199_990, 10)).unwrap(), [2; 10]);
    // Without the snapshot its segment goes.
    wait(store.remove_snapshot("late")).unwrap();
    assert_eq!(wait(writer.delete_dead()).unwrap(), 1);
    assert!(matches!(wait(snapshot.read(1, 0, 10)), Err(ObjectVolumeError::Missing(_))));
}
