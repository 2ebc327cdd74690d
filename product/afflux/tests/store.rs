//! The example store when its log cannot grow. This is the only test of its process, since it lowers the process's
//! limit.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub, reason = "a test")]

#[path = "../examples/store/log.rs"]
mod log;

use afflux::Cache;
use log::Store;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn what_comes_after_a_record_that_did_not_fit_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    let old = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(1 << 16), maximum: old.maximum }).unwrap();
    let cache = Cache::builder().memory(2 << 20).build().unwrap();
    let mut store = Store::open(&cache, place.path()).unwrap();
    store.put(b"first", b"1").unwrap();
    store.put(b"too long", &[2; 1 << 16]).unwrap_err();
    store.put(b"second", &[3; 65_000]).unwrap();
    store.put(b"third", &[4; 1_000]).unwrap_err();
    store.put(b"fourth", &[5; 470]).unwrap();
    store.delete(b"first").unwrap_err();
    assert_eq!(store.get(b"first").unwrap().unwrap(), b"1", "it is there until its end is in the log");
    store.sync().unwrap();
    drop(store);
    cache.close().unwrap();
    // The cache asks for the largest file size at the first file of a device.
    setrlimit(Resource::Fsize, old).unwrap();
    let cache = Cache::builder().memory(2 << 20).build().unwrap();
    let mut store = Store::open(&cache, place.path()).unwrap();
    assert_eq!(store.keys().collect::<Vec<_>>(), [&b"first"[..], b"fourth", b"second"]);
    assert_eq!(store.get(b"fourth").unwrap().unwrap(), [5; 470]);
    assert_eq!(store.compact().unwrap(), 0);
    store.put(b"third", b"6").unwrap();
    assert_eq!(store.get(b"third").unwrap().unwrap(), b"6");
}
