//! Other users of a file: handles of the cache, other caches, programs on the host.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use afflux::{Cache, Error, File, Knob, OpenOptions};
use afflux_scratch::eventually;

fn cache() -> Cache {
    Cache::builder().memory(8 << 20).build().unwrap()
}

fn read(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.len() as usize + 10];
    let count = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(count);
    bytes
}

/// Waits until a change of the file has another time than its last one. Two changes within the granularity of the
/// host's times have the same time.
fn a_tick_later(path: &Path) {
    let changed = || fs::metadata(path.with_extension("probe")).unwrap().modified().unwrap();
    let last = fs::metadata(path).unwrap().modified().unwrap();
    eventually("the host's clock has ticked", || {
        fs::write(path.with_extension("probe"), b"").unwrap();
        changed() > last
    });
}

/// Waits until the cache has looked at all of its open files. It looks about once a second, and notices another change
/// of a file of its own.
fn a_look_later(cache: &Cache, place: &Path) {
    let path = place.join("looked at");
    fs::write(&path, b"").unwrap();
    let file = cache.open_read(&path).unwrap();
    // The first change may be noticed in the middle of a look, before other files.
    for len in 1..=2 {
        fs::write(&path, vec![0; len]).unwrap();
        eventually("the cache has looked", || file.len() == len as u64);
    }
}

#[test]
fn a_file_opened_twice_and_by_another_name_is_the_same_file() {
    let place = tempfile::tempdir().unwrap();
    let (one, other) = (place.path().join("one"), place.path().join("other"));
    let cache = cache();
    let first = cache.create(&one).unwrap();
    fs::hard_link(&one, &other).unwrap();
    let second = cache.open_read(&other).unwrap();
    let third = cache.open_fd(fs::File::open(&one).unwrap()).unwrap();
    first.write_at(b"not on the host yet", 0).unwrap();
    assert!(first.is_same(&second) && first.is_same(&third));
    assert_eq!(read(&second), b"not on the host yet");
    assert_eq!(read(&third), b"not on the host yet");
    let error = second.write_at(b"x", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert_eq!(third.append(b"x").unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_reader_becomes_a_writer() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, b"old").unwrap();
    let cache = cache();
    let reader = cache.open_read(&path).unwrap();
    assert_eq!(read(&reader), b"old");
    let writer = cache.open(&path, OpenOptions::new().write(true)).unwrap();
    writer.write_at(b"new", 0).unwrap();
    assert_eq!(read(&reader), b"new");
    assert_eq!(writer.read_at(&mut [0; 3], 0).unwrap_err().kind(), ErrorKind::PermissionDenied);
    writer.close().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn what_truncate_cuts_is_gone_for_everybody() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let cache = cache();
    let file = cache.create(&path).unwrap();
    file.write_at(&[1; 10_000], 0).unwrap();
    let cut = cache.open(&path, OpenOptions::new().write(true).truncate(true)).unwrap();
    assert_eq!(file.len(), 0);
    cut.write_at(b"z", 0).unwrap();
    cut.sync_all().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"z");
}

#[test]
fn of_two_caches_one_is_refused_unless_both_only_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, b"shared").unwrap();
    let (one, other) = (cache(), cache());
    let reads = (one.open_read(&path).unwrap(), other.open_read(&path).unwrap());
    assert_eq!(read(&reads.0), read(&reads.1));
    let refused = one.create(&path).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
    assert!(matches!(Error::of(&refused), Some(Error::InUse { writing: true, .. })), "{refused}");
    assert_eq!(read(&reads.0), b"shared", "who is refused keeps what it had");
    assert!(one.create(&path).is_err());
    drop(reads);
    let writes = one.create(&path).unwrap();
    let refused = other.open_read(&path).unwrap_err();
    assert!(matches!(Error::of(&refused), Some(Error::InUse { writing: false, .. })), "{refused}");
    writes.write_at(b"S", 0).unwrap();
    writes.close().unwrap();
    // The file is durable and has no handle, so that any cache may open it.
    assert_eq!(read(&other.open_read(&path).unwrap()), b"Shared");
    let mut again = other.create(&path).unwrap();
    again.write_at(b"s", 0).unwrap();
    again.sync_data().unwrap();
    drop(again);
    again = one.create(&path).unwrap();
    assert_eq!(read(&again), b"shared", "what the other cache wrote meanwhile");
}

#[test]
fn a_file_that_others_changed_is_noticed_when_it_is_opened_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, b"before").unwrap();
    let cache = cache();
    let handle = cache.open_read(&path).unwrap();
    assert_eq!(read(&handle), b"before");
    a_tick_later(&path);
    fs::write(&path, b"after!").unwrap();
    assert_eq!(read(&cache.open_read(&path).unwrap()), b"after!", "it was open");
    assert_eq!(read(&handle), b"after!", "the other handle is of the same file");
    drop(handle);
    a_tick_later(&path);
    fs::write(&path, b"longer than before").unwrap();
    assert_eq!(read(&cache.open_read(&path).unwrap()), b"longer than before", "nobody had it open");
}

#[test]
fn an_open_file_that_others_change_is_noticed_by_itself() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, vec![b'a'; 20_000]).unwrap();
    let cache = cache();
    let file = cache.open_read(&path).unwrap();
    assert_eq!(read(&file), [b'a'; 20_000]);
    a_tick_later(&path);
    fs::File::options().write(true).open(&path).unwrap().write_at(b"b", 9_000).unwrap();
    eventually("the byte is seen", || read(&file)[9_000] == b'b');
    a_tick_later(&path);
    // It shrinks behind our back.
    fs::File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
    eventually("the size is seen", || file.len() == 5);
    assert_eq!(read(&file), b"aaaaa");
    a_tick_later(&path);
    fs::write(&path, b"cc").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 2, "asked, it looks at once");
    assert_eq!(read(&file), b"cc");
}

#[test]
fn what_is_not_written_yet_outlives_what_others_do() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    // Other programs may cut bytes that are on the host already. So nothing must be written before a sync: neither for
    // its age, nor in idle time, nor as the first bytes on a device of unknown speed.
    let built = Cache::builder().memory(8 << 20).knob(Knob::WritebackCentisecs, 0);
    let cache = built.knob(Knob::BackgroundCentisecs, 100).build().unwrap();
    let file = cache.create(&path).unwrap();
    file.write_at(&[1; 8192], 0).unwrap();
    a_look_later(&cache, place.path());
    fs::write(&path, b"").unwrap();
    a_look_later(&cache, place.path());
    assert_eq!(file.dirty_bytes(), 8192);
    assert_eq!(file.metadata().unwrap().len(), 8192);
    file.sync_data().unwrap();
    assert_eq!(fs::read(&path).unwrap(), [1; 8192]);
}

#[test]
fn another_file_with_the_same_number_is_another_file() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let path = place.path().join("file");
    let mut numbers = std::collections::BTreeSet::new();
    for round in 0..40_u8 {
        fs::write(&path, [round; 5_000]).unwrap();
        numbers.insert(fs::metadata(&path).unwrap().ino());
        assert_eq!(read(&cache.open_read(&path).unwrap()), [round; 5_000]);
        fs::remove_file(&path).unwrap();
        if round > 20 && numbers.len() < usize::from(round) {
            return;
        }
    }
    afflux_scratch::skipped!("no number was used twice here");
}

#[test]
fn a_file_that_is_removed_stays_for_those_who_have_it_open() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let cache = cache();
    let file = cache.create(&path).unwrap();
    file.write_at(&[5; 100_000], 0).unwrap();
    fs::remove_file(&path).unwrap();
    file.sync_all().unwrap();
    cache.drop_clean_pages();
    assert_eq!(read(&file), [5; 100_000]);
    assert_eq!(file.metadata().unwrap().links(), 0);
}
