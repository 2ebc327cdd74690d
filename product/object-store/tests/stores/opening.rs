//! Openings of directories, and records that cannot be read.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use afflux_object_store::{AllowedUse, Store, StoreError};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::child::{Process, say, work};
use crate::{open, scratch, url, wait};

#[test]
fn a_directory_is_made_and_belongs_to_one_process() {
    let scratch = scratch();
    let url = format!("{}/volume", url(&scratch));
    let first = open(&url).unwrap();
    assert_eq!(wait(first.access()).unwrap(), AllowedUse::ReadWrite);
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

/// The modes of a directory's own entries and of all below, but for the directory itself.
fn modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let metadata = fs::symlink_metadata(&entry).unwrap();
        found.push((entry.clone(), metadata.permissions().mode() & 0o7777));
        if metadata.is_dir() {
            found.extend(modes(&entry));
        }
    }
    found
}

fn are_private(directory: &Path) {
    let found = modes(directory);
    assert!(found.iter().any(|(path, _)| path.to_string_lossy().contains("/data/")), "{found:?}");
    let open: Vec<_> = found.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
}

/// The child: writes a volume, with the mask of a server.
#[test]
fn writer_without_a_mask() {
    let Some(url) = work() else { return };
    umask(Mode::empty());
    let store = open(&url).unwrap();
    let volume = crate::volume::volume(&store, 1);
    volume.write(1, 0, bytes::Bytes::from(vec![7; 200_000])).unwrap();
    wait(volume.commit(1)).unwrap();
    wait(afflux_object::DatedObjects::put(&store.objects(), "holder", "x".into())).unwrap();
    wait(volume.close()).unwrap();
    wait(volume.records().close()).unwrap();
    say(store.warning().unwrap_or("quiet"));
}

// rule: Other users can neither read nor change the objects of a volume in a directory.
#[test]
fn the_objects_of_a_directory_are_private_whatever_its_mode_and_the_mask() {
    let scratch = scratch();
    let write = || Process::start("opening::writer_without_a_mask", &url(&scratch), &[]).hear().unwrap();
    let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(scratch.path(), 0o755);
    assert_eq!(write(), "quiet");
    are_private(scratch.path());
    // A copy with other modes: its folders become private, which closes all below.
    for (path, mode) in modes(scratch.path()) {
        set(&path, mode | 0o066 | if path.is_dir() { 0o011 } else { 0 });
    }
    set(scratch.path(), 0o777);
    let said = write();
    assert!(said.contains("other users may replace the folders") && said.contains("chmod go-w"), "{said}");
    let folders = ["data", "records", "probe"].map(|folder| fs::metadata(scratch.path().join(folder)).unwrap());
    assert!(folders.iter().all(|folder| folder.permissions().mode() & 0o7777 == 0o700), "{folders:?}");
    let top = fs::metadata(scratch.path()).unwrap().permissions().mode();
    assert_eq!(top & 0o7777, 0o777, "the user's own directory keeps its mode");
}
