//! Accepted writes can be carried out, however few descriptors there are. This is the only test of its process, since
//! it lowers the process's limit.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

//! rule: a write that the library accepts can be carried out when descriptors are short
//! kept in: `product/linux-device/src/device/file.rs`

use std::io::ErrorKind;

use afflux::{Cache, Error, File};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Ends in the middle of a block.
const BYTES: usize = 65_537;

fn is_short(error: &std::io::Error) {
    assert!(matches!(Error::of(error), Some(Error::OutOfDescriptors { held: 1.., .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
    assert!(error.to_string().contains("ulimit"), "{error}");
}

fn files(cache: &Cache, place: &std::path::Path) -> Vec<File> {
    let mut open = Vec::new();
    while open.len() < 100 {
        match cache.create(place.join(open.len().to_string())) {
            Ok(file) => open.push(file),
            Err(error) => {
                is_short(&error);
                break;
            }
        }
    }
    open
}

#[test]
fn a_write_that_is_accepted_can_be_carried_out_when_descriptors_are_short() {
    // Not in memory: only past the host's page cache may a file need a second descriptor.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cache = Cache::builder().memory(32 << 20).build().unwrap();
    // The device opens its own descriptors first.
    cache.create(place.path().join("first")).unwrap().write_at(b"first", 0).unwrap();
    cache.drain().unwrap();
    let old = getrlimit(Resource::Nofile);
    let limit = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 + 40;
    let short = || setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: old.maximum }).unwrap();
    let long = || setrlimit(Resource::Nofile, old).unwrap();
    short();
    let mut open = files(&cache, place.path());
    assert!(open.len() >= 30, "{} files were opened", open.len());
    // Some descriptors are given back: so many files with partial last blocks can be written at a time.
    open.truncate(open.len() - 10);
    let bytes = vec![7; BYTES];
    let mut accepted = Vec::new();
    for (number, file) in open.iter().enumerate() {
        let written = match number % 3 {
            0 => file.write_at(&bytes, 0),
            1 => file.append(&bytes).map(drop),
            _ => smol::block_on(file.write_at_async(&bytes, 0)),
        };
        match written {
            Ok(()) => accepted.push(number),
            Err(error) => is_short(&error),
        }
    }
    assert!((1..open.len()).contains(&accepted.len()), "{} of {} were accepted", accepted.len(), open.len());
    for number in &accepted {
        open[*number].sync_data().unwrap();
    }
    long();
    for number in &accepted {
        assert_eq!(std::fs::read(place.path().join(number.to_string())).unwrap(), bytes);
    }
    short();
    // A durable file no longer needs its second descriptor: all others can be written in turn.
    for file in &open {
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
    }
    // Whole blocks need no second descriptor: many such files are dirty at a time.
    for file in &open {
        file.set_len(0).unwrap();
        file.write_at(&bytes[..65_536], 0).unwrap();
    }
    cache.close().unwrap();
    long();
    for number in 0..open.len() {
        assert_eq!(std::fs::read(place.path().join(number.to_string())).unwrap(), bytes[..65_536]);
    }
}
