//! Whether all records of a tree agree.
//!
//! Owns: the rules between records, read from their bytes.
//! Does not own: the tree and its memory.
//! Invariants: it reads the format by itself.

use std::collections::BTreeMap;

use crate::records::Map;

const ROOT: u64 = 1;
const DIRECTORY: u8 = 2;
const HEAD_BYTES: usize = 71;

struct Inode {
    kind: u8,
    links: u32,
    /// The parent and the number of entries of a directory.
    directory: (u64, u64),
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

fn inode(value: &[u8]) -> Inode {
    let links = u32::from_be_bytes(value[3..7].try_into().unwrap());
    let is_directory = value[0] == DIRECTORY;
    let directory =
        if is_directory { (number(&value[HEAD_BYTES..][..8]), number(&value[HEAD_BYTES + 8..])) } else { (0, 0) };
    Inode { kind: value[0], links, directory }
}

/// The objects without a name that the records still have. Panics where records disagree.
pub(crate) fn unnamed(map: &Map) -> usize {
    let of = |kind: u8| map.range(vec![kind]..vec![kind + 1]);
    let inodes = of(b'i').filter(|(key, _)| key.len() == 9);
    let inodes: BTreeMap<u64, Inode> = inodes.map(|(key, value)| (number(&key[1..]), inode(value))).collect();
    for (key, _) in of(b'i').filter(|(key, _)| key.len() > 9 && key[9] == b'x') {
        let of = key[..9].to_vec();
        assert!(map.get(&of).is_some_and(|inode| inode[1] & 0x80 != 0), "an attribute of no object");
    }
    let (mut names, mut entries) = (BTreeMap::<u64, Vec<u64>>::new(), BTreeMap::<u64, u64>::new());
    for (key, value) in of(b'd') {
        let (parent, ino) = (number(&key[1..9]), number(&value[..8]));
        assert_eq!(inodes[&ino].kind, value[8], "the kind of {ino:x}");
        assert!(inodes[&parent].kind == DIRECTORY && inodes[&parent].links > 0, "{parent:x} has entries");
        names.entry(ino).or_default().push(parent);
        *entries.entry(parent).or_default() += 1;
    }
    let marks: Vec<u64> = of(b'o').map(|(key, _)| number(&key[1..])).collect();
    for (ino, inode) in &inodes {
        let parents = names.get(ino).map_or(&[][..], Vec::as_slice);
        assert_eq!(inode.links == 0, marks.contains(ino), "the mark of {ino:x}");
        if inode.kind != DIRECTORY {
            assert_eq!(parents.len(), inode.links as usize, "the names of {ino:x}");
            continue;
        }
        let (parent, count) = inode.directory;
        assert_eq!(entries.get(ino).copied().unwrap_or(0), count, "the entries of {ino:x}");
        if *ino != ROOT && inode.links > 0 {
            assert_eq!(parents, [parent], "the parent of {ino:x}");
            let mut at = *ino;
            for _ in 0..=inodes.len() {
                at = inodes[&at].directory.0;
            }
            assert_eq!(at, ROOT, "{ino:x} is below itself");
        }
    }
    let living = inodes.values().filter(|inode| inode.links > 0).count() as u64 - 1;
    assert_eq!(map.get(&b"Uf"[..]).map_or(0, |value| number(value)), living, "the number of files");
    marks.len()
}
