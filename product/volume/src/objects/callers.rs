//! The users of the host that have made calls, each with a number.
//!
//! Owns: the bounded map from credentials to a caller.
//! Does not own: the rights found for a caller (`objects::rights`).
//! Invariants: a number is given to one user with one set of groups, and never again. At most
//! [`CALLERS_MAX`] are kept. A user that calls again before half as many others came keeps its number.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tree::caller::{Caller, Credentials};

/// Most users that are kept. A user that returns after it was dropped gets a new number, and new
/// questions to the host.
const CALLERS_MAX: usize = 4096;

type Key = (u32, u32, Box<[u32]>);

pub(crate) struct CallerTable(Mutex<NumberedCallers>);

struct NumberedCallers {
    /// Those that have called since the last change of generations.
    callers: BTreeMap<Key, Caller>,
    /// Those that had called between the last two changes.
    before: BTreeMap<Key, Caller>,
    next_number: u64,
}

impl Default for CallerTable {
    fn default() -> Self {
        Self(Mutex::new(NumberedCallers { callers: BTreeMap::new(), before: BTreeMap::new(), next_number: 1 }))
    }
}

impl CallerTable {
    /// The caller with these credentials.
    pub(crate) fn of(&self, uid: u32, gid: u32, groups: &[u32]) -> Caller {
        let mut groups = groups.to_vec();
        groups.sort_unstable();
        groups.dedup();
        let key = (uid, gid, groups.into_boxed_slice());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = known.callers.get(&key) {
            return caller.clone();
        }
        if known.callers.len() >= CALLERS_MAX / 2 {
            known.before = mem::take(&mut known.callers);
        }
        let caller = known.before.remove(&key).unwrap_or_else(|| {
            known.next_number += 1;
            let user = Credentials { uid, gid, groups: key.2.clone() };
            Caller::user(Arc::new(user), known.next_number - 1)
        });
        known.callers.insert(key, caller.clone());
        caller
    }
}

#[cfg(test)]
mod tests;
