//! The bytes of each party: of its connections, and of calls that outlive their connections.
//!
//! Owns: the sums of each party with connections or such calls, the rule for calls that outlive theirs; the tasks to
//! wake when a sum falls.
//! Does not own: each connection's bytes and the other bounds (`connection`).
//! Invariants: a connection's part is given back when the connection ends, and that of a call that outlives it when the
//! call ends. The list has no more entries than there are parties now and connections that ended since the last one
//! came. A connection waits at most once, and not after its end.
//!
//! A peer may end each connection with a reset, and leave calls that must go on. They count for its party until they
//! end. A party that has left as much as the others leave free begins no call, over whichever connection it asks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use crate::caller::Party;

/// The parties with connections.
#[derive(Default)]
pub struct Parties {
    of: Mutex<BTreeMap<Party, Weak<PartyBytes>>>,
    outliving: Arc<Sum>,
    /// The number of the last connection.
    last: AtomicU64,
}

/// A sum, and the connections that wait until it falls, by their numbers.
#[derive(Default)]
struct Sum {
    bytes: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Waker>>,
}

/// The bytes of one party.
struct PartyBytes {
    /// Of its connections, and of the calls that outlive theirs.
    all: Sum,
    /// Of the latter alone.
    outliving: AtomicU64,
    outliving_of_all: Arc<Sum>,
}

/// The bytes that one connection has added to its party's sum.
pub struct PartyQuota {
    party: Arc<PartyBytes>,
    number: u64,
    own: u64,
}

/// The bytes of calls that outlive their connection.
pub struct OutlivingBytes {
    quota: PartyQuota,
}

impl Sum {
    fn get(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_values().for_each(Waker::wake);
    }
}

impl Parties {
    /// The part of a new connection of this party.
    pub fn quota(&self, party: Party) -> PartyQuota {
        let mut parties = lock(&self.of);
        parties.retain(|_, bytes| bytes.strong_count() > 0);
        let bytes = parties.get(&party).and_then(Weak::upgrade).unwrap_or_else(|| {
            let (all, outliving) = (Sum::default(), AtomicU64::new(0));
            Arc::new(PartyBytes { all, outliving, outliving_of_all: Arc::clone(&self.outliving) })
        });
        parties.insert(party, Arc::downgrade(&bytes));
        PartyQuota { party: bytes, number: self.last.fetch_add(1, Ordering::Relaxed), own: 0 }
    }
}

impl PartyQuota {
    /// Sets the number of bytes that the connection holds.
    #[inline]
    pub fn hold(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.own, bytes);
        if bytes > before {
            self.party.all.add(bytes - before);
        } else if bytes < before {
            self.party.all.remove(before - bytes);
        }
    }

    /// The bytes of the party's other connections, and of its calls that outlive theirs.
    #[inline]
    pub fn others(&self) -> u64 {
        self.party.all.get().saturating_sub(self.own)
    }

    /// Whether the party may begin a call, with `bytes_max` for the calls of all parties that outlive their
    /// connections. A party with such calls leaves at least as much free as they have.
    #[inline]
    pub fn may_begin(&self, bytes_max: u64) -> bool {
        let own = self.party.outliving.load(Ordering::SeqCst);
        own == 0 || own <= bytes_max.saturating_sub(self.party.outliving_of_all.get())
    }

    /// Has a task woken when others of the party hold less, or calls end that outlive their connections. The caller
    /// must check again after this call.
    pub fn wake_when_less(&self, waker: &Waker) {
        for sum in [&self.party.all, &*self.party.outliving_of_all] {
            lock(&sum.waiting).insert(self.number, waker.clone());
        }
    }

    /// The connection ends, and calls with so many bytes go on.
    pub fn outlive(&mut self, bytes: u64) -> OutlivingBytes {
        let mut quota = Self { party: Arc::clone(&self.party), number: self.number, own: 0 };
        quota.hold(bytes);
        quota.party.outliving.fetch_add(bytes, Ordering::SeqCst);
        quota.party.outliving_of_all.add(bytes);
        OutlivingBytes { quota }
    }
}

impl OutlivingBytes {
    /// One of the calls has ended.
    pub fn give_back(&mut self, bytes: u64) {
        let own = self.quota.own;
        self.quota.hold(own - bytes);
        self.quota.party.outliving.fetch_sub(bytes, Ordering::SeqCst);
        self.quota.party.outliving_of_all.remove(bytes);
    }
}

impl Drop for OutlivingBytes {
    fn drop(&mut self) {
        self.give_back(self.quota.own);
    }
}

impl Drop for PartyQuota {
    fn drop(&mut self) {
        self.hold(0);
        for sum in [&self.party.all, &*self.party.outliving_of_all] {
            lock(&sum.waiting).remove(&self.number);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
