//! Changes that callers gave and the database may not show yet.
//!
//! Owns: the newest change of each key in those batches.
//! Does not own: the batches' way into the database (`tasks`).
//! Invariants: a change is here from before its batch is sent until after the database has taken it. So a key without a
//! change here may be read from the database at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use afflux_object::Sequence;
use bytes::Bytes;

/// The value that a key will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Value(Bytes),
    Removed,
    /// The database has to add up.
    Sum,
}

/// The keys of one batch.
pub(super) type Keys = Vec<Bytes>;

#[derive(Debug, Default)]
pub(super) struct Pending(Mutex<BTreeMap<Bytes, (Sequence, Given)>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, (Sequence, Given)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes of a batch that is about to be sent.
    pub(super) fn give(&self, sequence: Sequence, changes: Vec<(Bytes, Given)>) -> Keys {
        let mut pending = self.lock();
        let take = |(key, given): (Bytes, Given)| {
            pending.insert(key.clone(), (sequence, given));
            key
        };
        changes.into_iter().map(take).collect()
    }

    /// The database has taken a batch.
    pub(super) fn taken(&self, sequence: Sequence, keys: &[Bytes]) {
        let mut pending = self.lock();
        for key in keys {
            if pending.get(key).is_some_and(|(last, _)| *last <= sequence) {
                pending.remove(key);
            }
        }
    }

    /// What a caller gave for a key, if the database may not show it yet.
    pub(super) fn get(&self, key: &[u8]) -> Option<Given> {
        self.lock().get(key).map(|(_, given)| given.clone())
    }
}

#[cfg(test)]
mod tests;
