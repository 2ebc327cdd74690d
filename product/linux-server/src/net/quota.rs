//! The bytes that all connections together hold for their peers, and the part that each may hold.
//!
//! Owns: the sum, the rule of the bound, the connections that wait for quota.
//! Does not own: the bytes, and which of them count (`connection`).
//! Invariants: a connection always has [`UNIT_BYTES`]. The units of all possible connections are taken from the bound
//! before the first one comes, so that a newcomer never exceeds it. A connection gets more than its unit only while the
//! excess is at most the quota that is then still free. So one connection alone gets half, n greedy ones get one part
//! of n + 1 each, and a newcomer finds as much free as each of the others has. A connection that gets no quota waits
//! and stops nothing else. It is woken when bytes come back, round robin with the other waiting ones.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The bytes that each connection may always hold: the smallest receive, and a few small calls and replies.
pub(super) const UNIT_BYTES: u64 = 64 << 10;
/// How many of the waiting connections are woken when bytes come back. Each second, all are woken.
const WAKES_MAX: usize = 8;
/// The bytes that must come back before the allocator is asked to return memory to the system.
const SLACK_BYTES: u64 = 16 << 20;

/// One connection's part of the quota. Only that connection writes it.
pub(super) struct ConnectionBytes {
    held: AtomicU64,
    /// The connection's part of the bound: its unit, which is taken in advance, or the bytes that it holds if more.
    taken: AtomicU64,
}

impl ConnectionBytes {
    /// The bytes of a new connection.
    pub(super) fn new() -> Self {
        Self { held: AtomicU64::new(0), taken: AtomicU64::new(UNIT_BYTES) }
    }

    /// Bytes that the connection holds.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

pub(super) struct SharedQuota {
    /// The taken part of the bound: the units of all possible connections, and the bytes held beyond them.
    taken: AtomicU64,
    /// The maximum of `taken` since memory was last given back.
    peak: AtomicU64,
    waiting: Mutex<QuotaWaiters>,
    /// The number of waiting connections. Read after `taken` has shrunk, written before `taken` is read again.
    waiters: AtomicUsize,
}

#[derive(Default)]
struct QuotaWaiters {
    wakers: BTreeMap<u64, Waker>,
    /// The connection woken last; those with greater numbers are next.
    last_woken: u64,
}

impl SharedQuota {
    /// Quota for `connections_max` connections at a time.
    pub(super) fn new(connections_max: usize) -> Self {
        let units = connections_max as u64 * UNIT_BYTES;
        Self {
            taken: AtomicU64::new(units),
            peak: AtomicU64::new(units),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
        }
    }

    /// The connection `number` is gone.
    pub(super) fn leave(&self, number: u64, share: &ConnectionBytes) {
        self.forget(number);
        self.taken.fetch_sub(share.taken() - UNIT_BYTES, Ordering::SeqCst);
        self.wake(WAKES_MAX);
    }

    /// The bytes that a connection with `share` may hold: as many beyond its unit as are then still free.
    fn held_max(share: u64, taken: u64, bytes_max: u64) -> u64 {
        let free = bytes_max.saturating_sub(taken);
        if free == 0 { UNIT_BYTES } else { (free + share + UNIT_BYTES) / 2 }
    }

    /// Takes the quota for a connection to hold `bytes`, all of it or nothing; leaves `spare` of the bound free.
    pub(super) fn try_hold(&self, share: &ConnectionBytes, bytes: u64, spare: u64, bytes_max: u64) -> bool {
        let own = share.taken();
        let granted = bytes <= own
            || self
                .take(|taken| {
                    let most = Self::held_max(own, taken + spare, bytes_max);
                    (bytes <= most).then(|| bytes - own)
                })
                .is_some();
        if granted {
            share.held.store(bytes, Ordering::Relaxed);
            share.taken.store(bytes.max(own), Ordering::Relaxed);
            self.settle(share, bytes, own);
        }
        granted
    }

    /// Takes up to `more` beyond a connection's bytes, for a moment; returns the bytes that it may then hold.
    pub(super) fn reserve(&self, share: &ConnectionBytes, more: u64, bytes_max: u64) -> u64 {
        let own = share.taken();
        let wanted = share.held() + more;
        let grant = |taken| Some(wanted.min(Self::held_max(own, taken, bytes_max)).saturating_sub(own));
        let granted = if wanted > own { self.take(grant).unwrap_or(0) } else { 0 };
        share.taken.store(own + granted, Ordering::Relaxed);
        own + granted
    }

    /// Records that a connection holds `bytes`, permitted or not, and gives back its further quota. Wakes others if
    /// that is less than `before`: the return of a moment's reservation is no news.
    pub(super) fn settle(&self, share: &ConnectionBytes, bytes: u64, before: u64) {
        let (was, is) = (share.taken(), bytes.max(UNIT_BYTES));
        share.held.store(bytes, Ordering::Relaxed);
        share.taken.store(is, Ordering::Relaxed);
        if is > was {
            let sum = self.taken.fetch_add(is - was, Ordering::SeqCst) + (is - was);
            self.peak.fetch_max(sum, Ordering::Relaxed);
        } else if is < was {
            self.taken.fetch_sub(was - is, Ordering::SeqCst);
        }
        if is < before {
            self.wake(WAKES_MAX);
        }
    }

    /// Takes the part of the sum that `more` returns, if any.
    fn take(&self, more: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let mut taken = self.taken.load(Ordering::SeqCst);
        loop {
            let more = more(taken)?;
            if more == 0 {
                return Some(0);
            }
            match self.taken.compare_exchange_weak(taken, taken + more, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    self.peak.fetch_max(taken + more, Ordering::Relaxed);
                    return Some(more);
                }
                Err(now) => taken = now,
            }
        }
    }

    /// The units of all possible connections, and the bytes that connections hold beyond them.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Connections that wait for quota.
    pub(super) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::SeqCst)
    }

    /// Wakes the connection `number` when bytes come back. The connection then asks again, and also once right after
    /// this call, since bytes may have come back in between.
    pub(super) fn wait(&self, number: u64, waker: &Waker) {
        let mut waiting = self.lock();
        waiting.wakers.insert(number, waker.clone());
        self.waiters.store(waiting.wakers.len(), Ordering::SeqCst);
    }

    /// The connection `number` waits no longer.
    pub(super) fn forget(&self, number: u64) {
        if self.waiters() > 0 {
            let mut waiting = self.lock();
            waiting.wakers.remove(&number);
            self.waiters.store(waiting.wakers.len(), Ordering::SeqCst);
        }
    }

    fn wake(&self, most: usize) {
        if self.waiters() == 0 {
            return;
        }
        let mut waiting = self.lock();
        let mut woken = Vec::new();
        while woken.len() < most {
            let after = (Bound::Excluded(waiting.last_woken), Bound::Unbounded);
            let next = waiting.wakers.range(after).next().or_else(|| waiting.wakers.iter().next());
            let Some(number) = next.map(|(&number, _)| number) else { break };
            waiting.last_woken = number;
            woken.extend(waiting.wakers.remove(&number));
        }
        self.waiters.store(waiting.wakers.len(), Ordering::SeqCst);
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all waiting connections: some may need less than those woken before them.
    pub(super) fn wake_all(&self) {
        self.wake(usize::MAX);
    }

    /// Whether so much has come back that its memory should go back to the system.
    pub(super) fn has_slack(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        self.peak.load(Ordering::Relaxed).saturating_sub(taken) >= SLACK_BYTES
    }

    /// Gives freed memory back to the system, on a thread of its own, since the allocator walks all of its memory.
    /// Without this call it retains freed memory that lies below memory in use.
    pub(super) fn give_slack_back(&self) {
        self.peak.store(self.taken.load(Ordering::Relaxed), Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // If no thread can be had, memory goes back another time.
        drop(std::thread::Builder::new().name("afflux-trim".into()).spawn(|| {
            // SAFETY: the call takes the allocator's own locks, and moves no memory in use.
            unsafe { libc::malloc_trim(0) }
        }));
    }

    fn lock(&self) -> MutexGuard<'_, QuotaWaiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
