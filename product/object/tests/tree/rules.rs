//! Rules of the tree that need more than one call.
//!
//! Owns: these runs.
//! Does not own: the costs (`bill`), random calls (`model`).
//! Invariants: none of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_object::{ObjectTree, ObjectTreeOptions};
use afflux_simulator::Random;
use afflux_volume::{
    AttributeChange, Directory, Kind, New, Node, RenameHow, SetTime, Timestamp, VolumeError, XattrChange,
};
use bytes::Bytes;

use crate::check;
use crate::clients::serve;
use crate::lab::{Lab, Tree, bytes, kinds, make};
use crate::records::ROUND_TRIP_NS;

fn lab(seed: u64) -> Lab {
    Lab::new(seed, &ObjectTreeOptions::default())
}

#[test]
fn objects_of_each_kind_are_what_they_were_made_as_also_after_an_opening() {
    let mut lab = lab(1);
    let root = lab.root();
    let names: Vec<Bytes> = [&[1, 255, b'\\', b' '][..], &[b'n'; 255], b"a", b"\xc3\x28", b"-", b"~"]
        .into_iter()
        .map(Bytes::copy_from_slice)
        .collect();
    let made: Vec<_> = names
        .iter()
        .zip(kinds())
        .map(|(name, new)| {
            let created = lab.tree.create(&root, name.clone(), new, AttributeChange::default(), true);
            lab.run(created).unwrap().found
        })
        .collect();
    lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
    let root = lab.root();
    for (name, made) in names.iter().zip(&made) {
        let found = lab.run(lab.tree.lookup(&root, name.clone())).unwrap();
        assert_eq!((found.identity, found.stat), (made.identity, made.stat));
        let target = lab.run(lab.tree.read_link(&found.node));
        assert_eq!(target.is_ok(), found.stat.kind == Kind::Symlink);
        let data = lab.run(lab.tree.open_data(&found.node, true));
        assert_eq!(data.is_ok(), found.stat.kind == Kind::Regular);
    }
    let named = lab.run(lab.tree.name_all(&root, names)).unwrap();
    assert!(named.iter().zip(&made).all(|(named, made)| named.unwrap().stat == made.stat));
}

#[test]
fn a_large_directory_is_listed_once_each_and_its_parts_are_ranges() {
    const NAMES: u64 = 100_000;
    let lab = lab(1);
    let root = lab.root();
    lab.run(async {
        for number in 0..NAMES {
            make(&*lab.tree, &root, &format!("name {number}"), New::Special(afflux_volume::SpecialKind::Fifo))
                .await
                .unwrap();
        }
    });
    let volume = serve(&lab);
    let directory = lab.run(volume.mount(b"/")).unwrap();
    lab.core.records.take_calls();
    let (mut cookie, mut names) = (0, BTreeSet::new());
    loop {
        let listing = lab.run(volume.list(&directory, cookie, 8_000, false)).unwrap();
        names.extend(listing.entries.iter().map(|entry| entry.name.clone()));
        cookie = listing.entries.last().map_or(cookie, |last| last.cookie);
        if listing.end {
            break;
        }
    }
    assert_eq!(names.len() as u64, NAMES + 2, "and the two dots");
    let scans = lab.core.records.take_calls().scans;
    assert!((7..=20).contains(&scans), "{scans} scans");
    let space = lab.run(lab.tree.space(&root)).unwrap();
    assert_eq!(space.total_files - space.free_files, NAMES);
}

#[test]
fn an_object_without_a_name_lives_as_long_as_a_holder_or_the_process() {
    let mut lab = lab(2);
    let root = lab.root();
    let file = lab.make(&root, "file", New::Regular);
    let removed = lab.remove(&root, "file").unwrap();
    assert_eq!(removed.stat.links, 0);
    let later = |lab: &Lab| lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    later(&lab);
    assert_eq!(lab.stat(&file.node).unwrap().links, 0);
    assert_eq!(lab.run(lab.tree.open_identity(file.identity)).err(), Some(VolumeError::Stale));
    let again = lab.run(lab.tree.link(&file.node, &root, bytes("again"), true));
    assert_eq!(again.err(), Some(VolumeError::Stale));
    assert_eq!(check::unnamed(&lab.core.records.map()), 1);
    // The holder is still there when the process dies.
    lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
    later(&lab);
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
    let root = lab.root();
    let directory = lab.make(&root, "directory", New::Directory);
    lab.run(lab.tree.remove(&root, bytes("directory"), true, true)).unwrap();
    let inside = lab.run(make(&*lab.tree, &directory.node, "file", New::Regular));
    assert_eq!(inside.err(), Some(VolumeError::Stale), "nothing is made in a removed directory");
    assert_eq!(lab.run(lab.tree.parent(&directory.node)).err(), Some(VolumeError::Stale));
    drop(directory);
    later(&lab);
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
}

// rule: in an object store a file without a name can get its first one, and none after its last one
// kept in: `product/object/src/tree/make.rs`
#[test]
fn a_file_made_without_a_name_can_get_one_and_else_goes() {
    let mut lab = lab(7);
    let root = lab.root();
    let unnamed = |lab: &Lab| lab.run(lab.tree.create_unnamed(&root, AttributeChange::default())).unwrap().found;
    let later = |lab: &Lab| lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    let (kept, lost) = (unnamed(&lab), unnamed(&lab));
    assert_eq!((kept.stat.links, check::unnamed(&lab.core.records.map())), (0, 2));
    let linked = lab.run(lab.tree.link(&kept.node, &root, bytes("kept"), true)).unwrap();
    assert_eq!(linked.stat.links, 1);
    let space = lab.run(lab.tree.space(&root)).unwrap();
    assert_eq!(space.total_files - space.free_files, 1, "one file has a name");
    drop(lost);
    later(&lab);
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
    drop(kept);
    later(&lab);
    let found = lab.lookup(&root, "kept").unwrap();
    lab.remove(&root, "kept").unwrap();
    let again = lab.run(lab.tree.link(&found.node, &root, bytes("again"), true));
    assert_eq!(again.err(), Some(VolumeError::Stale));
    drop(found);
    let _at_the_crash = unnamed(&lab);
    later(&lab);
    assert_eq!(check::unnamed(&lab.core.records.map()), 1);
    lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
    later(&lab);
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
}

/// A reaper that reads all marks as soon as there is one finds the holder of the new file.
#[test]
fn a_file_without_a_name_is_held_before_its_mark_can_be_seen() {
    let lab = lab(7);
    let later = || lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    // The lab's own reaper has looked at the marks by then.
    later();
    let tree = lab.run(ObjectTree::open(Arc::clone(&lab.core), ObjectTreeOptions::default())).unwrap();
    let reaper = Arc::new(Mutex::new(Some(Box::pin(tree.reaper()))));
    let looks = Arc::clone(&reaper);
    lab.core.records.after_next_batch(move || {
        let polled = looks.lock().unwrap().as_mut().unwrap().as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    });
    let root = tree.exports()[0].root.node.clone();
    let file = lab.run(tree.create_unnamed(&root, AttributeChange::default())).unwrap().found;
    lab.world.spawn("reap", reaper.lock().unwrap().take().unwrap());
    later();
    assert_eq!(check::unnamed(&lab.core.records.map()), 1, "nobody removed it");
    assert_eq!(lab.run(tree.link(&file.node, &root, bytes("named"), true)).unwrap().stat.links, 1);
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
}

// rule: in an object store extended attributes persist over openings and go with their object
// kept in: `product/object/src/tree/xattrs.rs`
#[test]
fn extended_attributes_are_kept_and_go_with_their_object() {
    let mut lab = lab(8);
    let root = lab.root();
    let file = lab.make(&root, "file", New::Regular);
    let change = |lab: &Lab, node: &Node, name: &str, change| {
        lab.run(lab.tree.change_xattr(node, bytes(name), change, true)).map(|changed| changed.stat)
    };
    let get = |lab: &Lab, node: &Node, name: &str| lab.run(lab.tree.xattr(node, bytes(name)));
    let one = || XattrChange::Set(bytes("one"));
    lab.core.records.take_calls();
    assert_eq!(get(&lab, &file.node, "user.a"), Err(VolumeError::NoAttribute));
    assert_eq!(lab.core.records.take_calls().scans, 0, "an object without attributes costs no read");
    assert_eq!(change(&lab, &file.node, "user.a", XattrChange::Remove), Err(VolumeError::NoAttribute));
    assert_eq!(change(&lab, &file.node, "user.a", XattrChange::Replace(bytes("x"))), Err(VolumeError::NoAttribute));
    let changed = change(&lab, &file.node, "user.a", one()).unwrap();
    assert!(changed.ctime > file.stat.ctime && changed.mtime == file.stat.mtime);
    assert_eq!(change(&lab, &file.node, "user.a", XattrChange::Create(bytes("x"))), Err(VolumeError::Exists));
    assert_eq!(change(&lab, &file.node, "other.a", one()), Err(VolumeError::NotSupported));
    change(&lab, &file.node, "trusted.b", one()).unwrap();
    let by = file.node.used_by(&serve(&lab).caller(7, 7, &[]));
    assert_eq!(lab.run(lab.tree.xattrs(&by)).unwrap(), [bytes("user.a")]);
    assert_eq!(get(&lab, &by, "trusted.b"), Err(VolumeError::NoAttribute));
    assert_eq!(change(&lab, &by, "trusted.b", one()), Err(VolumeError::NotPermitted));
    assert_eq!(change(&lab, &by, "user.a", one()), Err(VolumeError::Denied));
    lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
    let root = lab.root();
    let file = lab.lookup(&root, "file").unwrap();
    assert_eq!(get(&lab, &file.node, "user.a").unwrap(), "one");
    assert_eq!(lab.run(lab.tree.xattrs(&file.node)).unwrap(), [bytes("trusted.b"), bytes("user.a")]);
    lab.remove(&root, "file").unwrap();
    change(&lab, &file.node, "user.c", one()).unwrap();
    drop(file);
    lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
    assert!(!lab.core.records.map().keys().any(|key| key.len() > 9 && key[0] == b'i' && key[9] == b'x'));
}

#[test]
fn a_new_owner_or_group_takes_the_capabilities_of_a_program_and_nothing_else() {
    let lab = lab(8);
    let file = lab.make(&lab.root(), "file", New::Regular);
    let set = |change| drop(lab.run(lab.tree.set(&file.node, change, true)).unwrap());
    let give = |name| {
        let change = XattrChange::Set(bytes("one"));
        lab.run(lab.tree.change_xattr(&file.node, bytes(name), change, true)).unwrap();
    };
    let names = || lab.run(lab.tree.xattrs(&file.node)).unwrap();
    give("security.other");
    for change in [
        AttributeChange { uid: Some(7), ..AttributeChange::default() },
        AttributeChange { gid: Some(7), ..AttributeChange::default() },
    ] {
        give("security.capability");
        set(AttributeChange { mode: Some(0o755), ..AttributeChange::default() });
        assert_eq!(names(), [bytes("security.capability"), bytes("security.other")]);
        set(change);
        assert_eq!(names(), [bytes("security.other")]);
    }
}

#[test]
fn a_namespace_without_a_name_behind_it_names_no_attribute() {
    let lab = lab(8);
    let file = lab.make(&lab.root(), "file", New::Regular);
    for name in ["user.", "trusted.", "security."] {
        let changes = [XattrChange::Set(bytes("x")), XattrChange::Create(bytes("x")), XattrChange::Remove];
        for change in changes {
            let changed = lab.run(lab.tree.change_xattr(&file.node, bytes(name), change, true));
            assert!(matches!(changed, Err(VolumeError::Invalid { .. })), "{name}: {changed:?}");
        }
        let read = lab.run(lab.tree.xattr(&file.node, bytes(name)));
        assert!(matches!(read, Err(VolumeError::Invalid { .. })), "{name}: {read:?}");
    }
    let by = file.node.used_by(&serve(&lab).caller(7, 7, &[]));
    let changed = lab.run(lab.tree.change_xattr(&by, bytes("user."), XattrChange::Remove, true));
    assert_eq!(changed.err(), Some(VolumeError::Denied), "rights come first, as on Linux");
}

#[test]
fn an_object_has_as_many_attributes_as_can_be_listed() {
    let lab = lab(9);
    let root = lab.root();
    let file = lab.make(&root, "file", New::Regular);
    let name = |number: u32| Bytes::from(format!("user.{number:0>250}").into_bytes());
    let full = (0..).find_map(|number| {
        let set = lab.tree.change_xattr(&file.node, name(number), XattrChange::Set(Bytes::new()), false);
        lab.run(set).err().map(|error| (number, error))
    });
    assert_eq!(full, Some((256, VolumeError::NoSpace)), "256 names of 255 bytes and a zero are 64 KiB");
}

#[test]
fn many_removed_objects_are_reaped_side_by_side() {
    let lab = lab(6);
    let root = lab.root();
    let held: Vec<_> = (0..640).map(|number| lab.make(&root, &number.to_string(), New::Regular)).collect();
    for number in 0..640 {
        lab.remove(&root, &number.to_string()).unwrap();
    }
    assert_eq!(check::unnamed(&lab.core.records.map()), 640);
    drop(held);
    lab.run(lab.platform().sleep_until(lab.platform().now().after(15 * ROUND_TRIP_NS)));
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
}

#[test]
fn times_move_forward_and_a_later_write_counts_more_than_a_set_time() {
    let lab = lab(3);
    let root = lab.root();
    let made = lab.make(&root, "file", New::Regular);
    let set = |mtime| AttributeChange { mtime, ..AttributeChange::default() };
    let old = Timestamp { seconds: -5, nanos: 7 };
    let first = lab.run(lab.tree.set(&made.node, set(SetTime::To(old)), true)).unwrap().stat;
    assert_eq!(first.mtime, old);
    let second = lab.run(lab.tree.set(&made.node, set(SetTime::Keep), true)).unwrap().stat;
    assert!(made.stat.ctime < first.ctime && first.ctime < second.ctime);
    let before = lab.stat(&root).unwrap();
    let linked = lab.run(lab.tree.link(&made.node, &root, bytes("second"), true)).unwrap();
    assert!(linked.parent.before.mtime == before.mtime && linked.parent.after.mtime > before.mtime);
    assert_eq!((linked.stat.links, linked.stat.mtime), (2, old));
    // The core sees a write.
    lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    let file = lab.core.file_of(made.stat.fileid);
    lab.disk.change_behind(file, 6, 0, b"theirs");
    let written = lab.stat(&made.node).unwrap();
    assert!(written.size == 6 && written.mtime > linked.stat.ctime && written.ctime == written.mtime, "{written:?}");
    let third = lab.run(lab.tree.set(&made.node, set(SetTime::To(old)), true)).unwrap().stat;
    assert!(third.mtime == old && third.ctime > written.ctime);
}

#[test]
fn a_body_with_writes_that_nobody_read_is_asked_for() {
    let lab = lab(5);
    let root = lab.root();
    let file = lab.make(&root, "file", New::Regular);
    lab.disk.change_behind(lab.core.file_of(file.stat.fileid), 6, 0, b"theirs");
    lab.core.files().unread.insert(file.stat.fileid);
    assert_eq!(lab.stat(&file.node).unwrap().size, 6);
    assert!(lab.core.files().unread.is_empty(), "the core was asked");
}

#[test]
fn a_writer_that_lost_the_volume_answers_nothing() {
    let lab = lab(4);
    let root = lab.root();
    lab.make(&root, "file", New::Regular);
    lab.core.records.fence();
    let lost = Some(VolumeError::Io { errno: 5 });
    assert_eq!(lab.stat(&root).err(), lost);
    assert_eq!(lab.lookup(&root, "file").err(), lost);
    assert_eq!(lab.lookup(&root, "none").err(), lost, "that is no answer about a name");
    assert_eq!(lab.remove(&root, "file").err(), lost);
    assert_eq!(lab.run(lab.tree.sync(&root)).err(), lost);
}

/// Random calls on shared names. Only unexpected errors count.
async fn disturb(tree: Arc<Tree>, mut random: Random) {
    let root = tree.exports()[0].root.node.clone();
    for _ in 0..60 {
        let mut at = root.clone();
        for _ in 0..random.below(3) {
            at = match tree.lookup(&at, bytes(&format!("s{}", random.below(3)))).await {
                Ok(found) if found.stat.kind == Kind::Directory => found.node,
                _ => break,
            };
        }
        let names = [format!("s{}", random.below(3)), format!("s{}", random.below(3))];
        let [name, other] = names.each_ref().map(|name| bytes(name));
        let how = random.pick(&[RenameHow::Replace, RenameHow::Exchange]);
        let result = match random.below(11) {
            0 | 1 => make(&*tree, &at, &names[0], New::Directory).await.map(drop),
            2 => make(&*tree, &at, &names[0], New::Regular).await.map(drop),
            3 => tree.remove(&at, name, false, true).await.map(drop),
            4 => tree.remove(&at, name, true, true).await.map(drop),
            5 => tree.rename((&at, name), (&root, other), how, true).await.map(drop),
            6 => tree.rename((&root, name), (&at, other), how, true).await.map(drop),
            7 => match tree.lookup(&root, name).await {
                Ok(found) => tree.link(&found.node, &at, other, true).await.map(drop),
                Err(error) => Err(error),
            },
            8 | 9 => match tree.lookup(&root, name).await {
                Ok(found) => {
                    let change = if random.below(3) > 0 { XattrChange::Set(other) } else { XattrChange::Remove };
                    tree.change_xattr(&found.node, bytes("user.x"), change, true).await.map(drop)
                }
                Err(error) => Err(error),
            },
            _ => match tree.create_unnamed(&at, AttributeChange::default()).await {
                Ok(made) if random.below(2) == 0 => tree.link(&made.found.node, &at, other, true).await.map(drop),
                made => made.map(drop),
            },
        };
        if let Err(error @ VolumeError::Io { .. }) = result {
            panic!("{error:?}");
        }
    }
}

// rule: in an object store calls on names side by side leave records that agree
// kept in: `product/object/src/tree/make.rs`, `product/object/src/tree/rename.rs`
#[test]
fn calls_side_by_side_leave_records_that_agree() {
    for seed in 0..100 {
        let inodes_max = if seed % 2 == 0 { 0 } else { 65_536 };
        let lab = Lab::new(seed, &ObjectTreeOptions { inodes_max, ..ObjectTreeOptions::default() });
        let ended = Arc::new(Mutex::new(0));
        for number in 0..4 {
            let (tree, random, ended) = (Arc::clone(&lab.tree), Random::new(seed).fork(number), Arc::clone(&ended));
            lab.world.spawn("disturb", async move {
                disturb(tree, random).await;
                *ended.lock().unwrap() += 1;
            });
        }
        lab.run(async {
            while *ended.lock().unwrap() < 4 {
                lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)).await;
            }
            lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)).await;
        });
        assert_eq!(check::unnamed(&lab.core.records.map()), 0, "seed {seed}");
    }
}
