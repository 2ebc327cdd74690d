//! A lack of descriptors is an error. This is the only test of its process, since it lowers the process's limit.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::io::ErrorKind;

use afflux::{Cache, Error, Knob};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn running_out_of_descriptors_is_told() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(16 << 20).knob(Knob::ReadaheadBytes, 0).build().unwrap();
    let old = getrlimit(Resource::Nofile);
    let limit = descriptors() as u64 + 40;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: old.maximum }).unwrap();
    let mut open = Vec::new();
    let error = loop {
        match cache.create(place.path().join(open.len().to_string())) {
            Ok(file) => {
                // Its partial last block takes a second descriptor, which can be closed again.
                if file.write_at(&[8; 5_000], 0).and_then(|()| file.sync_data()).is_ok() {
                    open.push(file);
                }
            }
            Err(error) => break error,
        }
        assert!(open.len() < 100, "there is no end");
    };
    assert!(matches!(Error::of(&error), Some(Error::OutOfDescriptors { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    assert!(error.to_string().contains("ulimit"), "{error}");
    let count = open.len();
    assert!(count >= 20, "{count} files were opened");
    let error = Cache::builder().memory(1 << 20).build().unwrap_err();
    assert_eq!(
        (error.kind(), Error::of(&error).and_then(Error::errno)),
        (ErrorKind::QuotaExceeded, Some(libc::EMFILE))
    );
    // Open files go on, and a descriptor that is given back can be used.
    for file in &open {
        assert_eq!(file.read_at(&mut [0; 5_000], 0).unwrap(), 5_000);
    }
    open.truncate(count / 2);
    cache.create(place.path().join("another")).unwrap();
    setrlimit(Resource::Nofile, old).unwrap();
}
