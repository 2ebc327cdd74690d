//! The bytes that all connections of one party hold together.
//!
//! Owns: the sum, one for each party with connections; the tasks to wake when it falls.
//! Does not own: each connection's bytes and the bound (`connection`).
//! Invariants: a connection's part is given back when the connection ends. The list has no more entries than there are
//! connections now and connections that ended since the last one came.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use crate::caller::Party;

/// The parties with connections.
#[derive(Default)]
pub struct Parties(Mutex<BTreeMap<Party, Weak<PartyBytes>>>);

/// The bytes of one party's connections.
#[derive(Default)]
struct PartyBytes {
    bytes: AtomicU64,
    /// Connections that wait until the sum falls.
    waiting: Mutex<Vec<Waker>>,
}

/// The bytes that one connection has added to its party's sum.
pub struct PartyShare {
    party: Arc<PartyBytes>,
    own: u64,
}

impl Parties {
    /// The part of a new connection of this party.
    pub fn share(&self, party: Party) -> PartyShare {
        let mut parties = lock(&self.0);
        parties.retain(|_, bytes| bytes.strong_count() > 0);
        let bytes = parties.get(&party).and_then(Weak::upgrade).unwrap_or_default();
        parties.insert(party, Arc::downgrade(&bytes));
        PartyShare { party: bytes, own: 0 }
    }
}

impl PartyShare {
    /// Sets the number of bytes that the connection holds.
    #[inline]
    pub fn hold(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.own, bytes);
        if bytes > before {
            self.party.bytes.fetch_add(bytes - before, Ordering::SeqCst);
        } else if bytes < before {
            self.party.bytes.fetch_sub(before - bytes, Ordering::SeqCst);
            self.wake();
        }
    }

    /// The bytes of the party's other connections.
    #[inline]
    pub fn others(&self) -> u64 {
        self.party.bytes.load(Ordering::SeqCst).saturating_sub(self.own)
    }

    /// Has a task woken when another connection of the party holds less. The caller must check again after this call.
    pub fn wake_when_less(&self, waker: &Waker) {
        let mut waiting = lock(&self.party.waiting);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *lock(&self.party.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for PartyShare {
    fn drop(&mut self) {
        self.hold(0);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
