//! How many bytes all connections together hold for their peers, and how many each may.
//!
//! Owns: the sum, the rule of the bound, the connections that wait for room.
//! Does not own: the bytes, and which of them count (`connection`).
//! Invariants: a connection always has [`UNIT_BYTES`]. Those of all connections that there can be are taken from the
//! bound before the first one comes, so that a newcomer never passes it. Beyond them a connection gets more only while what it then has beyond is at most what is then left free: so one
//! alone gets half, n that want much get a part of n + 1 each, and a newcomer finds as much free as the
//! others have. A connection that gets nothing waits with nothing else stopped, and is woken when bytes
//! come back, in turn with the others that wait.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What each connection may hold in any case: the smallest receive, and a few small calls and replies.
pub(super) const UNIT_BYTES: u64 = 64 << 10;
/// How many of the connections that wait are woken when bytes come back. All are, every second.
const WAKES_MAX: usize = 8;
/// What must have come back before the allocator is asked to give memory back to the system.
const SLACK_BYTES: u64 = 16 << 20;

/// What one connection has of the room. Written by that connection alone.
pub(super) struct Share {
    held: AtomicU64,
    /// What is taken from the bound for it: its unit, which is so before it comes, or as much as it holds.
    taken: AtomicU64,
}

impl Share {
    /// Of a connection that begins.
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

pub(super) struct Room {
    /// What is taken from the bound: the units of all connections that there can be, and what is held beyond.
    taken: AtomicU64,
    /// The most of it since memory was last given back.
    peak: AtomicU64,
    waiting: Mutex<Waiting>,
    /// How many connections wait. Read after `taken` has become less, written before it is looked at again.
    waiters: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    wakers: BTreeMap<u64, Waker>,
    /// The connection woken last; those with greater numbers are next.
    turn: u64,
}

impl Room {
    /// For so many connections at a time.
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
    pub(super) fn leave(&self, number: u64, share: &Share) {
        self.forget(number);
        self.taken.fetch_sub(share.taken() - UNIT_BYTES, Ordering::SeqCst);
        self.wake(WAKES_MAX);
    }

    /// What a connection with `share` may hold: as much beyond its unit as it then leaves free.
    fn may_hold(share: u64, taken: u64, bytes_max: u64) -> u64 {
        let free = bytes_max.saturating_sub(taken);
        if free == 0 { UNIT_BYTES } else { (free + share + UNIT_BYTES) / 2 }
    }

    /// Takes what a connection needs to hold `bytes`, all of it or nothing; leaves `spare` of the bound free.
    pub(super) fn try_hold(&self, share: &Share, bytes: u64, spare: u64, bytes_max: u64) -> bool {
        let own = share.taken();
        let granted = bytes <= own
            || self
                .take(|taken| {
                    let most = Self::may_hold(own, taken + spare, bytes_max);
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

    /// Takes up to `more` beyond what a connection holds, for a moment; says what it may hold with that.
    pub(super) fn reserve(&self, share: &Share, more: u64, bytes_max: u64) -> u64 {
        let own = share.taken();
        let wanted = share.held() + more;
        let grant = |taken| Some(wanted.min(Self::may_hold(own, taken, bytes_max)).saturating_sub(own));
        let granted = if wanted > own { self.take(grant).unwrap_or(0) } else { 0 };
        share.taken.store(own + granted, Ordering::Relaxed);
        own + granted
    }

    /// Notes that a connection holds `bytes`, permitted or not, and gives back what it has beyond. Others
    /// are woken if that is less than `before`: a moment's reservation that comes back is no news.
    pub(super) fn settle(&self, share: &Share, bytes: u64, before: u64) {
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

    /// Takes what `more` says of the sum, if it does.
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

    /// Bytes that connections hold beyond their units, and the units of all that there can be.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Connections that wait for room.
    pub(super) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::SeqCst)
    }

    /// Has the connection `number` woken when bytes come back. It then asks again, and once more right
    /// after this, since they may have come back in between.
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
            let after = (Bound::Excluded(waiting.turn), Bound::Unbounded);
            let next = waiting.wakers.range(after).next().or_else(|| waiting.wakers.iter().next());
            let Some(number) = next.map(|(&number, _)| number) else { break };
            waiting.turn = number;
            woken.extend(waiting.wakers.remove(&number));
        }
        self.waiters.store(waiting.wakers.len(), Ordering::SeqCst);
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Wakes all that wait: some may do with less than those that were woken before them.
    pub(super) fn wake_all(&self) {
        self.wake(usize::MAX);
    }

    /// Whether so much has come back that its memory should go back to the system.
    pub(super) fn has_slack(&self) -> bool {
        let taken = self.taken.load(Ordering::Relaxed);
        self.peak.load(Ordering::Relaxed).saturating_sub(taken) >= SLACK_BYTES
    }

    /// Gives freed memory back to the system, on a thread of its own: the allocator goes through all of its
    /// memory. By itself it keeps what was freed below something that is still in use.
    pub(super) fn give_slack_back(&self) {
        self.peak.store(self.taken.load(Ordering::Relaxed), Ordering::Relaxed);
        #[cfg(target_env = "gnu")]
        // If there is no thread to be had, memory goes back another time.
        drop(std::thread::Builder::new().name("afflux-trim".into()).spawn(|| {
            // SAFETY: it takes the allocator's own locks, and moves nothing that is in use.
            unsafe { libc::malloc_trim(0) }
        }));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
