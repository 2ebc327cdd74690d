#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use afflux::{Cache, Error};

use super::{count, guarded, keep, last, status};
use crate::border::CallFailure;
use crate::code::Code;

#[test]
fn a_panic_becomes_an_error() {
    assert_eq!(status(|| panic!("on purpose")), Code::Poisoned as i32);
    assert!(last().contains("on purpose"), "{}", last());
    assert_eq!(count(|| panic!("with {}", 7)), Code::Poisoned as i64);
    assert!(last().contains("with 7"), "{}", last());
}

#[test]
fn a_panic_in_a_call_takes_the_cache_out_of_use() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(b"bytes", 0).unwrap();
    let failed = status(|| guarded(|| file.cache(), || panic!("half way")));
    assert_eq!(failed, Code::Poisoned as i32);
    let error = file.read_at(&mut [0; 5], 0).unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::Poisoned { panic }) if panic.contains("half way")), "{error}");
    // Bytes written by then are on the device, and the others are reported.
    drop(cache.close());
}

#[test]
fn the_last_error_is_the_threads_own_and_stays_until_the_next() {
    keep(CallFailure::invalid("one thing".to_owned()));
    std::thread::spawn(|| assert_eq!(last(), "no error")).join().unwrap();
    assert_eq!(status(|| Ok(())), 0);
    assert_eq!(last(), "one thing", "a success says nothing");
    keep(CallFailure::of(Code::Busy));
    assert_eq!(last(), "another cache has the file");
    keep(CallFailure::invalid("a zero \0 byte".to_owned()));
    assert_eq!(last(), "a zero \\0 byte");
}
