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

/// The change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Value(Bytes),
    Removed,
    /// The database adds it up.
    Sum(i64),
}

/// The changes of one batch, with its number.
pub(super) type Sent = (Sequence, Vec<(Bytes, Given)>);

#[derive(Debug, Default)]
pub(super) struct PendingKeys(Mutex<BTreeMap<Bytes, (Sequence, Given)>>);

impl PendingKeys {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bytes, (Sequence, Given)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes of a batch that is about to be sent.
    pub(super) fn give(&self, (sequence, changes): &Sent) {
        let mut pending = self.lock();
        changes.iter().for_each(|(key, given)| _ = pending.insert(key.clone(), (*sequence, given.clone())));
    }

    /// The database has taken a batch.
    pub(super) fn taken(&self, (sequence, changes): &Sent) {
        let mut pending = self.lock();
        for (key, _) in changes {
            if pending.get(key).is_some_and(|(last, _)| last <= sequence) {
                pending.remove(key);
            }
        }
    }

    /// The newest change of a key, if the database may not show it yet.
    pub(super) fn get(&self, key: &[u8]) -> Option<Given> {
        self.lock().get(key).map(|(_, given)| given.clone())
    }
}

#[cfg(test)]
mod tests;
