//! The look at all names.
//!
//! Owns: the names that lead to each object, the entries of each directory.
//! Does not own: the comparison with inodes (`inodes`).
//! Invariants: it decides nothing.

use std::collections::BTreeMap;

use afflux_volume::Kind;

use super::Check;
use crate::error::ObjectVolumeError;
use crate::format::entry::Entry;
use crate::pages::PagedScan;
use crate::seams::{Clock, Durability, Objects, RecordDatabase};

/// The names of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamesOf {
    pub(super) count: u64,
    /// The directory of one of them.
    pub(super) parent: u64,
    /// The kind that they tell, if all tell the same.
    pub(super) kind: Option<Kind>,
}

/// What all names say.
#[derive(Debug, Default)]
pub(super) struct NamesFound {
    pub(super) of_objects: BTreeMap<u64, NamesOf>,
    /// The number of names in each directory.
    pub(super) entries: BTreeMap<u64, u64>,
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    pub(super) async fn names(&mut self) -> Result<NamesFound, ObjectVolumeError> {
        let mut names = NamesFound::default();
        let mut scan = PagedScan::new((vec![b'd'], vec![b'd' + 1]), Durability::Remote);
        while let Some(found) = scan.next(self.records).await? {
            for (key, value) in found {
                if let Some(entry) = self.well_formed(&key, Entry::decode(&key, &value)) {
                    self.report.names += 1;
                    names.add(Entry::parent(&key), &entry);
                }
            }
        }
        Ok(names)
    }
}

impl NamesFound {
    fn add(&mut self, parent: u64, entry: &Entry) {
        *self.entries.entry(parent).or_default() += 1;
        let new = || NamesOf { count: 0, parent, kind: Some(entry.kind) };
        let names = self.of_objects.entry(entry.ino).or_insert_with(new);
        names.count += 1;
        names.kind = names.kind.filter(|kind| *kind == entry.kind);
    }
}
