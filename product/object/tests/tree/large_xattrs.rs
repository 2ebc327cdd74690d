//! Extended attributes of many bytes: their bound, and the bytes that calls read.

use afflux_object::{ObjectTreeOptions, RecordChange, RecordDatabase};
use afflux_volume::{Directory, New, Node, VolumeError, XattrChange};
use bytes::Bytes;

use crate::lab::{Lab, bytes};

const VALUE: usize = 65_000;
/// One mebibyte of names and values.
const FITTING: usize = 16;

fn lab() -> (Lab, Node) {
    let lab = Lab::new(1, &ObjectTreeOptions::default());
    let file = lab.make(&lab.root(), "file", New::Regular).node;
    (lab, file)
}

fn set(lab: &Lab, file: &Node, at: usize, length: usize) -> Result<(), VolumeError> {
    let change = XattrChange::Set(Bytes::from(vec![7; length]));
    lab.run(lab.tree.change_xattr(file, bytes(&format!("user.{at}")), change, false)).map(drop)
}

fn remove(lab: &Lab, file: &Node, at: usize) -> Result<(), VolumeError> {
    lab.run(lab.tree.change_xattr(file, bytes(&format!("user.{at}")), XattrChange::Remove, false)).map(drop)
}

/// Attributes as an earlier version may have stored them: without a bound.
fn leave(lab: &Lab, file: &Node, count: usize) {
    set(lab, file, 0, 1).unwrap();
    let ino = lab.stat(file).unwrap().fileid;
    let key = |at: usize| [&b"i"[..], &ino.to_be_bytes(), b"xuser.", at.to_string().as_bytes()].concat();
    let batch = (1..count).map(|at| RecordChange::Put(key(at), vec![9; VALUE])).collect();
    lab.core.records.apply(batch).unwrap();
    lab.tree.forget_inodes();
}

// rule: All extended attributes of an object have a mebibyte, names and values together.
#[test]
fn the_bytes_of_an_objects_attributes_are_bounded() {
    let (lab, file) = lab();
    (0..FITTING).for_each(|at| set(&lab, &file, at, VALUE).unwrap());
    assert_eq!(set(&lab, &file, FITTING, VALUE).unwrap_err(), VolumeError::NoSpace);
    // A replaced value of an attribute counts as the difference.
    set(&lab, &file, 0, VALUE).unwrap();
    set(&lab, &file, FITTING, 8_000).unwrap();
    assert_eq!(set(&lab, &file, 1, VALUE + 500).unwrap_err(), VolumeError::NoSpace);
    remove(&lab, &file, 1).unwrap();
    set(&lab, &file, 1, VALUE + 400).unwrap();
    // The count is the same after the inode has left the memory.
    lab.tree.forget_inodes();
    assert_eq!(set(&lab, &file, FITTING + 1, 1_000).unwrap_err(), VolumeError::NoSpace);
    assert_eq!(lab.run(lab.tree.xattrs(&file)).unwrap().len(), FITTING + 1);
}

// rule: A change of an extended attribute reads its own value, and not those of others.
#[test]
fn a_change_reads_no_other_values() {
    let (lab, file) = lab();
    (0..FITTING).for_each(|at| set(&lab, &file, at, VALUE).unwrap());
    lab.core.records.take_read();
    for at in 0..FITTING {
        set(&lab, &file, at, VALUE - 1).unwrap();
        assert!(lab.core.records.take_read().bytes <= VALUE + 100);
    }
}

// rule: A list of attributes, a stat and a removal hold a part of the values at a time.
#[test]
fn attributes_beyond_the_bound_are_read_some_at_a_time() {
    const MANY: usize = 600;
    let (lab, file) = lab();
    leave(&lab, &file, MANY);
    let neighbour = lab.make(&lab.root(), "neighbour", New::Regular);
    lab.tree.forget_inodes();
    lab.core.records.take_read();
    assert_eq!(lab.run(lab.tree.xattrs(&file)).unwrap().len(), MANY);
    assert!(lab.core.records.take_read().most_bytes <= 512 << 10);
    // Stats of neighbours read none of the values in between.
    let stats = lab.run(lab.tree.stat_all(vec![file.clone(), neighbour.node.clone()])).unwrap();
    assert!(stats.iter().all(Option::is_some));
    lab.tree.forget_inodes();
    lab.core.records.take_read();
    let stats = lab.run(lab.tree.stat_all(vec![file.clone(), neighbour.node])).unwrap();
    assert!(stats.iter().all(Option::is_some));
    assert!(lab.core.records.take_read().bytes <= 512 << 10);
    // The attributes may only shrink.
    assert_eq!(set(&lab, &file, MANY, 1).unwrap_err(), VolumeError::NoSpace);
    set(&lab, &file, 1, 10).unwrap();
    remove(&lab, &file, 2).unwrap();
    assert_eq!(lab.run(lab.tree.xattr(&file, bytes("user.3"))).unwrap().len(), VALUE);
    lab.core.records.take_read();
    lab.remove(&lab.root(), "file").unwrap();
    drop(file);
    lab.run(async {
        let platform = lab.platform();
        afflux_engine::Platform::sleep_until(
            &**platform,
            afflux_engine::Platform::now(&**platform).after(60_000_000_000),
        )
        .await;
    });
    assert!(lab.core.records.take_read().most_bytes <= 512 << 10);
    assert!(!lab.core.records.map().keys().any(|key| key.first() == Some(&b'i') && key.get(9) == Some(&b'x')));
}
