//! The check of a volume with names.
//!
//! Owns: a volume with one of each kind of object, one fault at a time in its records.
//! Does not own: faults of segments (`calm`).
//! Invariants: a fault is made in a copy of the durable records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use afflux_volume::{AttributeChange, Directory, Kind, New, Node, RenameHow, SpecialKind, XattrChange};
use bytes::Bytes;

use super::run::{Volume, open};
use super::store::{MS, Store};
use crate::format::extent::{ExtentSource, SegmentRange, StoredExtent};
use crate::format::records::Body;
use crate::format::tree::{Content, Entry, FILES_KEY, InodeRecord, ROOT};
use crate::{
    Batch, CheckReport, Durability, Key, Manifest, ObjectFault, ObjectTree, ObjectTreeOptions, Record, RecordChange,
    RecordDatabase, RecordsError, Sequence, Value, check,
};

type Tree = ObjectTree<Volume>;

/// The numbers of a volume's objects.
struct Made {
    directory: u64,
    small: u64,
    large: u64,
    link: u64,
    unnamed: u64,
}

/// Durable records, as a reader has them.
struct ReadRecords(BTreeMap<Key, Value>);

impl RecordDatabase for ReadRecords {
    fn epoch(&self) -> u32 {
        0
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn apply(&self, _: Batch) -> Result<Sequence, RecordsError> {
        Err(RecordsError::ReadOnly)
    }

    fn durable_through(&self) -> Sequence {
        Sequence::default()
    }

    async fn durable(&self, _: Sequence) -> Result<(), RecordsError> {
        Ok(())
    }

    async fn scan_first(&self, from: Key, to: Key, _: Durability, most: usize) -> Result<Vec<Record>, RecordsError> {
        Ok(self.0.range(from..to).map(|(key, value)| (key.clone(), value.clone())).take(most).collect())
    }

    async fn manifest(&self) -> Result<Manifest, RecordsError> {
        Err(RecordsError::ReadOnly)
    }

    fn unfenced_at_ns(&self) -> u64 {
        0
    }

    async fn prove(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}

fn checked(store: &Store) -> CheckReport {
    found_after(store, Vec::new())
}

fn records(store: &Store) -> BTreeMap<Key, Value> {
    store.world().checker.durable.clone()
}

/// What a check finds after these changes of the records.
fn found_after(store: &Store, changes: Vec<RecordChange>) -> CheckReport {
    let mut records = records(store);
    changes.iter().for_each(|change| change.apply_to(&mut records));
    store.finish(check(store, &ReadRecords(records), store)).unwrap()
}

fn make(store: &Store, tree: &Tree, directory: &Node, name: &'static str, new: New) -> Node {
    let name = Bytes::from_static(name.as_bytes());
    store.finish(tree.create(directory, name, new, AttributeChange::default(), true)).unwrap().found.node
}

fn ino(store: &Store, tree: &Tree, node: &Node) -> u64 {
    store.finish(tree.stat(node)).unwrap().fileid
}

/// A volume with one of each kind of object, with two directories in each other, a second name and a file without one.
fn made(store: &Store) -> Made {
    let volume = Arc::new(store.finish(open(store, None)).unwrap());
    let tree = store.finish(ObjectTree::open(Arc::clone(&volume), ObjectTreeOptions::default())).unwrap();
    let root = tree.exports()[0].root.node.clone();
    let directory = make(store, &tree, &root, "directory", New::Directory);
    let inner = make(store, &tree, &directory, "inner", New::Directory);
    let small = make(store, &tree, &inner, "small", New::Regular);
    let large = make(store, &tree, &directory, "large", New::Regular);
    let link = make(store, &tree, &root, "link", New::Symlink { target: Bytes::from_static(b"directory") });
    make(store, &tree, &root, "fifo", New::Special(SpecialKind::Fifo));
    make(store, &tree, &root, "device", New::Special(SpecialKind::CharDevice { major: 1, minor: 3 }));
    store.finish(tree.link(&large, &root, Bytes::from_static(b"second"), true)).unwrap();
    let value = XattrChange::Set(Bytes::from_static(b"value"));
    store.finish(tree.change_xattr(&small, Bytes::from_static(b"user.a"), value, true)).unwrap();
    let unnamed = store.finish(tree.create_unnamed(&root, AttributeChange::default())).unwrap().found.node;
    let numbers = [&directory, &small, &large, &link, &unnamed].map(|node| ino(store, &tree, node));
    let [directory, small, large, link, unnamed] = numbers;
    volume.write(small, 0, Bytes::from(vec![1; 20])).unwrap();
    volume.write(large, 0, Bytes::from(vec![2; 150])).unwrap();
    store.finish(volume.commit(small)).unwrap();
    store.finish(volume.commit(large)).unwrap();
    Made { directory, small, large, link, unnamed }
}

fn inode_of(store: &Store, ino: u64) -> InodeRecord {
    InodeRecord::decode(&store.world().checker.durable[&InodeRecord::key(ino)]).unwrap()
}

fn put_inode(store: &Store, ino: u64, edit: impl FnOnce(&mut InodeRecord)) -> RecordChange {
    let mut inode = inode_of(store, ino);
    edit(&mut inode);
    RecordChange::Put(InodeRecord::key(ino), inode.encode())
}

fn add_name(parent: u64, name: &str, to: u64, kind: Kind) -> RecordChange {
    RecordChange::Put(Entry::key(parent, name.as_bytes()), Entry::value(to, kind))
}

/// Whether losing a record is seen at all: nothing counts an object's attributes, and the others are of writers.
fn is_counted(key: &[u8]) -> bool {
    matches!(key[0], b'i' | b'd' | b'o' | b'x' | b's') && key.get(9) != Some(&b'x') || key == FILES_KEY
}

#[test]
fn a_volume_with_one_of_each_kind_is_sound() {
    let store = Store::new(0);
    made(&store);
    let report = checked(&store);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.inodes, report.names), (9, 8));
}

// rule: A check of a volume reads names, inodes and attributes, too: no record of it can be lost or damaged unseen.
#[test]
fn no_lost_record_goes_unseen() {
    let store = Store::new(0);
    made(&store);
    let keys: Vec<Key> = records(&store).into_keys().filter(|key| is_counted(key)).collect();
    for kind in [b'i', b'd', b'o', b'x', b's', b'U'] {
        assert!(keys.iter().any(|key| key[0] == kind), "{}", kind as char);
    }
    for key in keys {
        let report = found_after(&store, vec![RecordChange::Remove(key.clone())]);
        assert!(report.is_damaged(), "{}", key.escape_ascii());
    }
}

#[test]
fn no_malformed_record_goes_unseen_or_hides_the_others() {
    let store = Store::new(0);
    made(&store);
    let is_read = |key: &[u8]| (is_counted(key) && key[0] != b'o') || matches!(key, b"L");
    let keys: Vec<Key> = records(&store).into_keys().filter(|key| is_read(key)).collect();
    for key in &keys {
        let report = found_after(&store, vec![RecordChange::Put(key.clone(), vec![9; 3])]);
        assert!(report.malformed.contains_key(key), "{}: {report:?}", key.escape_ascii());
    }
    // A key of another length belongs to no object.
    for kind in [b'i', b'd', b'o', b't', b'x', b's'] {
        let report = found_after(&store, vec![RecordChange::Put(vec![kind, 1], Vec::new())]);
        assert_eq!(report.malformed.len(), 1, "{}: {report:?}", kind as char);
    }
}

#[test]
fn records_that_contradict_each_other_are_named() {
    let store = Store::new(0);
    let Made { directory, small, large, link, unnamed } = made(&store);
    let nothing = 77;
    let mark = |ino| RecordChange::Put(InodeRecord::unnamed_key(ino), Vec::new());
    let body = |ino, size, used| RecordChange::Put(Body::key(ino), Body { size, used, changed_ns: 1 }.encode());
    let links = |ino, links| put_inode(&store, ino, |inode| inode.links = links);
    let cases = [
        (add_name(ROOT, "new", nothing, Kind::Regular), nothing, ObjectFault::NoInode),
        (add_name(ROOT, "new", nothing, Kind::Regular), ROOT, ObjectFault::Entries { counted: 5, found: 6 }),
        (add_name(large, "in a file", small, Kind::Regular), large, ObjectFault::NoDirectory),
        (add_name(unnamed, "in it", small, Kind::Regular), unnamed, ObjectFault::NoDirectory),
        (add_name(nothing, "nowhere", small, Kind::Regular), nothing, ObjectFault::NoObject),
        (add_name(ROOT, "second", large, Kind::Fifo), large, ObjectFault::Kind),
        (links(large, 3), large, ObjectFault::Links { counted: 3, found: 2 }),
        (links(small, 0), small, ObjectFault::Unmarked),
        (mark(small), small, ObjectFault::Marked),
        (mark(nothing), nothing, ObjectFault::NoObject),
        (body(nothing, 0, 0), nothing, ObjectFault::NoObject),
        (RecordChange::Put(InodeRecord::xattr_key(nothing, b"user.a"), Vec::new()), nothing, ObjectFault::NoObject),
        (RecordChange::Put(InodeRecord::xattr_key(large, b"user.a"), Vec::new()), large, ObjectFault::Attributes),
        (body(link, 0, 0), link, ObjectFault::NoFile),
        (
            put_inode(&store, directory, |inode| inode.content = Content::Directory { parent: nothing, entries: 2 }),
            directory,
            ObjectFault::Lost,
        ),
        (
            put_inode(&store, directory, |inode| inode.content = Content::Directory { parent: directory, entries: 2 }),
            directory,
            ObjectFault::Lost,
        ),
        (
            put_inode(&store, directory, |inode| inode.content = Content::Directory { parent: nothing, entries: 2 }),
            directory,
            ObjectFault::Parent,
        ),
        (
            put_inode(&store, directory, |inode| inode.content = Content::Directory { parent: ROOT, entries: 1 }),
            directory,
            ObjectFault::Entries { counted: 1, found: 2 },
        ),
    ];
    for (change, ino, fault) in cases {
        let report = found_after(&store, vec![change.clone()]);
        assert!(report.faults.contains(&(ino, fault)), "{fault:?} of {ino:x}: {report:?}");
        assert!(report.is_damaged());
    }
    let without_root = found_after(&store, vec![RecordChange::Remove(InodeRecord::key(ROOT))]);
    assert_eq!(without_root.faults.iter().filter(|(ino, _)| *ino == ROOT).count(), 1, "{without_root:?}");
    let counted = found_after(&store, vec![RecordChange::Add(FILES_KEY.to_vec(), 1)]);
    assert_eq!(counted.miscounted_objects, Some((8, 7)));
}

#[test]
fn bytes_that_are_lost_are_named() {
    let store = Store::new(0);
    let Made { small, large, .. } = made(&store);
    let extent_of = |ino| {
        let (from, to) = StoredExtent::keys(ino);
        let world = store.world();
        let found = world.checker.durable.range(from..to).next().map(|(key, value)| (key.clone(), value.clone()));
        found.unwrap()
    };
    // The bytes of the small file are in its record.
    let lost = found_after(&store, vec![RecordChange::Remove(extent_of(small).0)]);
    assert_eq!(lost.misfits, [small]);
    let (key, value) = extent_of(large);
    let (_, extent) = StoredExtent::decode(&key, &value).unwrap();
    let ExtentSource::Segment(place) = extent.source.clone() else { panic!("{extent:?} is inline") };
    let moved = |place| StoredExtent { source: ExtentSource::Segment(place), ..extent.clone() }.value();
    let beyond = SegmentRange { offset: place.offset + 4, ..place.clone() };
    let report = found_after(&store, vec![RecordChange::Put(key.clone(), moved(beyond))]);
    assert_eq!(report.damaged[&place.segment].1.len(), 1, "{report:?}");
    // No record counts this segment any more.
    let segment = crate::format::records::SegmentRecord::Live.key(place.segment);
    store.world().objects.clear();
    let report = found_after(&store, vec![RecordChange::Remove(segment)]);
    assert_eq!(report.damaged[&place.segment].1[0].ino, large, "{report:?}");
}

/// Polls the reaper until it has nothing to do.
fn reap_all(store: &Store, tree: &Tree) {
    let mut reaper = Box::pin(tree.reaper());
    for _ in 0..100 {
        let polled = reaper.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the tree is open");
        store.finish(store.sleep_ns(100 * MS));
    }
}

/// Calls of all kinds after [`made`], with cuts and removals in parts.
fn change_all(store: &Store) {
    let volume = Arc::new(store.finish(open(store, None)).unwrap());
    let tree = store.finish(ObjectTree::open(Arc::clone(&volume), ObjectTreeOptions::default())).unwrap();
    let root = tree.exports()[0].root.node.clone();
    let name = |name: &'static str| Bytes::from_static(name.as_bytes());
    let holed = make(store, &tree, &root, "holed", New::Regular);
    let number = ino(store, &tree, &holed);
    (0..60).for_each(|at| volume.write(number, 2 * at, Bytes::from(vec![3; 1])).unwrap());
    store.finish(volume.commit(number)).unwrap();
    volume.set_size(number, 9).unwrap();
    store.finish(volume.commit(number)).unwrap();
    volume.write(number, 50, Bytes::from(vec![4; 150])).unwrap();
    store.finish(volume.commit(number)).unwrap();
    let directory = store.finish(tree.lookup(&root, name("directory"))).unwrap().node;
    let inner = store.finish(tree.lookup(&directory, name("inner"))).unwrap().node;
    store.finish(tree.rename((&directory, name("inner")), (&root, name("moved")), RenameHow::default(), true)).unwrap();
    store.finish(tree.rename((&inner, name("small")), (&root, name("holed")), RenameHow::default(), true)).unwrap();
    store.finish(tree.remove(&root, name("second"), false, true)).unwrap();
    store.finish(tree.remove(&directory, name("large"), false, true)).unwrap();
    drop((holed, inner));
    store.finish(tree.remove(&root, name("moved"), true, true)).unwrap();
    reap_all(store, &tree);
}

#[test]
fn no_state_that_a_crash_leaves_is_called_damaged() {
    let store = Store::new(0);
    made(&store);
    change_all(&store);
    let batches: Vec<Batch> = store.world().log.iter().flat_map(|entry| entry.batches.clone()).collect();
    assert!(batches.len() > 30, "too little happened: {}", batches.len());
    let (mut records, mut marked) = (BTreeMap::new(), 0);
    for batch in batches {
        batch.iter().for_each(|change| change.apply_to(&mut records));
        marked += u64::from(records.keys().any(|key| key[0] == b'o'));
        let report = store.finish(check(&store, &ReadRecords(records.clone()), &store)).unwrap();
        assert!(report.is_sound(), "after {batch:?}: {report:?}");
    }
    assert!(marked > 5 && !records.keys().any(|key| key[0] == b'o'), "all is reaped at the end");
}
