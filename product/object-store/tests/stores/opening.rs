//! Openings of directories, and records that cannot be read.

use afflux_object_store::{Access, Store, StoreError};

use crate::child::{Process, say, work};
use crate::{open, scratch, url, wait};

#[test]
fn a_directory_is_made_and_belongs_to_one_process() {
    let scratch = scratch();
    let url = format!("{}/volume", url(&scratch));
    let first = open(&url).unwrap();
    assert_eq!(first.access(), &Access::ReadWrite);
    assert!(scratch.path().join("volume").is_dir());
    let error = open(&url).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(first);
    open(&url).unwrap();
    let error = open(&format!("{url}/a/b")).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Settings { .. }), "{error}");
}

/// The child: opens the store and holds it.
#[test]
fn holder() {
    let Some(url) = work() else { return };
    let _store = open(&url).unwrap();
    say("holds");
    loop {
        std::thread::park();
    }
}

#[test]
fn the_lock_of_a_killed_process_is_free() {
    let scratch = scratch();
    let mut child = Process::start("opening::holder", &url(&scratch), &[]);
    assert_eq!(child.hear().as_deref(), Some("holds"));
    assert!(matches!(open(&url(&scratch)).map(drop), Err(StoreError::InUse { .. })));
    child.kill();
    open(&url(&scratch)).unwrap();
}

#[test]
fn records_of_an_unknown_format_are_not_opened() {
    let scratch = scratch();
    let store = open(&url(&scratch)).unwrap();
    let records = wait(store.records()).unwrap();
    // Nothing writes a manifest after this.
    wait(records.close()).unwrap();
    drop(records);
    let folder = scratch.path().join("records/manifest");
    let newest = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    // The first bytes are the version of the format.
    bytes[..2].copy_from_slice(&999_u16.to_be_bytes());
    std::fs::write(&newest, bytes).unwrap();
    let error = wait(store.records()).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Format { .. }), "{error}");
    assert!(error.to_string().contains("999"), "{error}");
}

#[test]
fn clones_of_a_store_are_the_same_store() {
    let store: Store = open("memory:").unwrap();
    let objects = store.clone().objects();
    wait(afflux_object::Objects::create(&objects, "data/x", bytes::Bytes::from_static(b"x"))).unwrap();
    assert_eq!(wait(afflux_object::Objects::list(&store.objects(), "data/")).unwrap(), ["data/x"]);
}
