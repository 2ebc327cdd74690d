//! The paths of files, found from their numbers.
//!
//! Owns: the walk from a file's entry up to the root.
//! Does not own: the tree of a server, which never needs it.
//! Invariants: it reads each entry once. Entries that are malformed or contradict each other give no path.

use std::collections::{BTreeMap, BTreeSet};

use afflux_volume::Kind;

use crate::error::ObjectVolumeError;
use crate::format::tree::{Entry, ROOT};
use crate::seams::{Durability, PagedScan, RecordDatabase};

/// One path of each of these files that has a name.
///
/// # Errors
/// If the records are unreadable.
pub async fn paths<R: RecordDatabase>(
    records: &R,
    wanted: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, Vec<u8>>, ObjectVolumeError> {
    let mut names = BTreeMap::new();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut scan = PagedScan::new(vec![b'd'], vec![b'd' + 1], Durability::Remote);
    while let Some(found) = scan.next(records).await? {
        for (key, value) in found {
            let Ok(entry) = Entry::decode(&key, &value) else { continue };
            if entry.kind == Kind::Directory || wanted.contains(&entry.ino) {
                names.insert(entry.ino, (Entry::parent(&key), entry.name));
            }
        }
    }
    Ok(wanted.iter().filter_map(|ino| Some((*ino, path(&names, *ino)?))).collect())
}

fn path(names: &BTreeMap<u64, (u64, Vec<u8>)>, ino: u64) -> Option<Vec<u8>> {
    let (mut parts, mut at) = (Vec::new(), ino);
    while at != ROOT {
        let (parent, name) = names.get(&at).filter(|_| parts.len() <= names.len())?;
        parts.push([b"/", name.as_slice()].concat());
        at = *parent;
    }
    parts.reverse();
    Some(parts.concat())
}
