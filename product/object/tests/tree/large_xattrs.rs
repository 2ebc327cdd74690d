//! Extended attributes of many bytes: their bound, and the bytes that calls read.

use afflux_object::ObjectTreeOptions;
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
