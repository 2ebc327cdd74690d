//! Objects that must be there: the store has shown them in a list or by the answer to their creation, or a record names
//! them.
//!
//! They never change, and nobody removes what a record names. So an answer that contradicts is a mistake on the network
//! path: a gateway that does not find what is there, a proxy with a body of its own. It is asked again, for a while.
//!
//! Owns: the names of records with their sizes, since when an answer contradicts.
//! Does not own: the answers (`wire`), the time for which they are doubted (`judge`).
//! Invariants: the newest names are cached, so many as an opening needs and no more. An answer that does not change is
//! believed in the end, so damage is found, and from then on it is believed at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use object_store::path::Path;

use crate::address::{TABLES, is_data, is_in, is_record};

/// Names that are cached. An opening reads some hundred objects after a list.
const NAMES_MAX: usize = 8_192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameAnswer {
    Absent,
    /// The object has so many bytes.
    Size(u64),
    /// The object ends before the part that was asked for, or its bytes are no record.
    Wrong,
}

#[derive(Debug, Default)]
pub(crate) struct ShownNames(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    known: BTreeMap<Path, Known>,
    order: VecDeque<Path>,
}

#[derive(Debug, Default)]
struct Known {
    /// Absent if no list showed it.
    size: Option<u64>,
    doubted_ns: Option<u64>,
}

impl ShownNames {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store has shown an object.
    pub(crate) fn show(&self, path: &Path, size: u64) {
        if is_record(path) {
            self.names().known(path).size = Some(size);
        }
    }

    pub(crate) fn forget(&self, path: &Path) {
        self.names().known.remove(path);
    }

    /// An answer was as expected.
    pub(crate) fn trust(&self, path: &Path) {
        if let Some(known) = self.names().known.get_mut(path) {
            known.doubted_ns = None;
        }
    }

    /// Whether an answer contradicts, and has done so for less than `patience_ns`.
    pub(crate) fn is_doubtful(&self, path: &Path, answer: NameAnswer, now_ns: u64, patience_ns: u64) -> bool {
        if patience_ns == 0 || !(is_record(path) || is_data(path)) {
            return false;
        }
        let mut names = self.names();
        let size = names.known.get(path).and_then(|known| known.size);
        let contradicts = match answer {
            NameAnswer::Absent => size.is_some() || is_data(path) || is_in(path, TABLES),
            NameAnswer::Size(bytes) => size.is_some_and(|size| size != bytes),
            NameAnswer::Wrong => true,
        };
        contradicts && now_ns.saturating_sub(*names.known(path).doubted_ns.get_or_insert(now_ns)) < patience_ns
    }
}

impl Names {
    fn known(&mut self, path: &Path) -> &mut Known {
        if !self.known.contains_key(path) {
            self.order.push_back(path.clone());
            // A forgotten name has an entry in the order, too.
            while self.order.len() > NAMES_MAX {
                let oldest = self.order.pop_front();
                oldest.map(|oldest| self.known.remove(&oldest));
            }
        }
        self.known.entry(path.clone()).or_default()
    }
}

#[cfg(test)]
mod tests;
