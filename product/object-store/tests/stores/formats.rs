//! Volumes of earlier formats.
//!
//! Owns: copies of such volumes, and the names and bytes in each.
//! Does not own: the formats.
//! Invariants: a copy was written by a release of its time, and does not change.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use afflux_object::{Compression, ObjectTree, ObjectTreeOptions, ObjectVolume, VolumeLimits, check, usage};
use afflux_object_store::{Store, ViewState};
use afflux_scratch::Scratch;
use afflux_volume::Directory;
use bytes::Bytes;

use crate::volume::{Impatient, Volume, volume_with};
use crate::{open, scratch, url, wait};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let into = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &into);
        } else {
            fs::copy(entry.path(), into).unwrap();
        }
    }
}

fn numbers() -> Vec<u8> {
    (1..=15_000).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

/// The number of a file in the root, or in a directory of it.
fn ino(volume: &Arc<Volume<Impatient>>, path: &[&'static str]) -> u64 {
    let tree = wait(ObjectTree::open(Arc::clone(volume), ObjectTreeOptions::default())).unwrap();
    let mut node = tree.exports()[0].root.node.clone();
    for name in path {
        node = wait(tree.lookup(&node, Bytes::from_static(name.as_bytes()))).unwrap().node;
    }
    wait(tree.stat(&node)).unwrap().fileid
}

fn is_whole(store: &Store, names: u64, is_compressed: bool) {
    let view = wait(store.view(&ViewState::Fixed)).unwrap();
    let report = wait(check(&store.objects(), &view, &store.clock())).unwrap();
    assert!(report.is_sound() && report.names == names, "{report:?}");
    let found = wait(usage(&view)).unwrap();
    assert_eq!((found.is_compressed, found.live_bytes > 78_000), (is_compressed, true), "{found:?}");
    let limits = VolumeLimits::default();
    let view = wait(ObjectVolume::open_view(store.objects(), view, Impatient(store.clock()), limits)).unwrap();
    assert_eq!(view.has_compressed_runs(), is_compressed);
}

/// A store with a copy of a volume of the tests.
fn copy_of(name: &str) -> (Scratch, Store) {
    let scratch = scratch();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(name), &scratch.path().join("volume"));
    let store = open(&format!("{}/volume", url(&scratch))).unwrap();
    (scratch, store)
}

// rule: Each later version reads compressed bytes, also one that compresses none itself.
#[test]
fn a_volume_of_format_3_with_compression_is_read() {
    let (_scratch, store) = copy_of("format-3-compressed");
    is_whole(&store, 5, true);
    let plain = VolumeLimits { compression: Compression::None, ..VolumeLimits::default() };
    let volume = Arc::new(volume_with(&store, 1, plain));
    let expected = numbers();
    // The second file is a clone of the first.
    for path in [&["directory", "numbers"][..], &["again"]] {
        let file = ino(&volume, path);
        assert_eq!(wait(volume.read(file, 0, expected.len() as u64)).unwrap(), expected, "{path:?}");
        assert_eq!(wait(volume.read(file, 66_000, 10)).unwrap(), expected[66_000..66_010], "{path:?}");
    }
    wait(volume.close()).unwrap();
}

// rule: A volume without compression is read and written, and has compressed bytes only after a writer made some.
#[test]
fn a_volume_of_format_3_is_read_and_written() {
    for compression in [Compression::None, Compression::Zstd(3), Compression::Lz4] {
        let (_scratch, store) = copy_of("format-3");
        is_whole(&store, 4, false);
        let limits = VolumeLimits { compression, ..VolumeLimits::default() };
        let old = Arc::new(volume_with(&store, 1, limits));
        let (file, small) = (ino(&old, &["directory", "numbers"]), ino(&old, &["small"]));
        let expected = numbers();
        assert_eq!(wait(old.read(file, 0, expected.len() as u64)).unwrap(), expected);
        assert_eq!(wait(old.read(small, 0, 6)).unwrap(), b"hello\n");
        assert!(!old.has_compressed_runs());
        old.write(small, 6, Bytes::from(expected.clone())).unwrap();
        wait(old.flush()).unwrap();
        wait(old.commit(small)).unwrap();
        assert_eq!(old.has_compressed_runs(), compression != Compression::None);
        wait(old.close()).unwrap();
        drop(old);
        is_whole(&store, 4, compression != Compression::None);
        // A writer that compresses nothing reads all forms.
        let plain = VolumeLimits { compression: Compression::None, ..VolumeLimits::default() };
        let again = volume_with(&store, 2, plain);
        assert_eq!(wait(again.read(small, 6, expected.len() as u64)).unwrap(), expected);
        assert_eq!(wait(again.read(small, 66_000, 10)).unwrap(), expected[65_994..66_004]);
        wait(again.close()).unwrap();
    }
}
