//! The owners that wait for bytes of one file.
//!
//! Owns: their order, their offers, the time for which an offer to a distant client is reserved.
//! Does not own: the ranges (`ranges`), the wait itself (front ends, `data::locking`).
//! Invariants: no waiter has an offer while a lock or an earlier waiter conflicts with it. An offer to a caller on this
//! host is reserved until the caller has taken it or has gone; one to a client elsewhere for [`OFFER_NS`]. Dead waiters
//! delay living clients by a single offer.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_engine::Nanos;

use super::index::LockIndex;
use super::owner::{HolderId, Lock};
use super::ranges::LockedRanges;
use crate::locks::index::step;

/// Time for which freed bytes are reserved for a client after its notice. A living client asks within milliseconds.
const OFFER_NS: u64 = 300_000_000;

/// Notifies a waiter that it may ask again.
pub trait LockWaker: Send + Sync + 'static {
    /// The waiter has an offer. Must not wait, and must not ask for locks.
    fn wake(&self);

    /// The open that a client elsewhere waits with, by its holder's number. The end of the open ends the wait. None for
    /// a caller on this host.
    fn open(&self) -> Option<u64>;

    /// Whether the waiter is a caller on this host: such a caller takes its offer, or leaves the queue.
    fn is_local(&self) -> bool {
        self.open().is_none()
    }
}

struct Waiter {
    wanted: Lock,
    /// The group of its holder.
    group: u64,
    waker: Arc<dyn LockWaker>,
    /// Its offer, if it has one, ends then.
    offered_until: Option<Nanos>,
    /// The lock that conflicted at the last check. A release of this lock causes the next check.
    behind: Option<Lock>,
}

impl Waiter {
    fn is_of(&self, wanted: &Lock, waker: &Arc<dyn LockWaker>) -> bool {
        let is_same = || self.wanted.owner == wanted.owner && self.wanted.span == wanted.span;
        if waker.is_local() { Arc::ptr_eq(&self.waker, waker) } else { !self.waker.is_local() && is_same() }
    }
}

/// The waiters of a file, the first one first.
#[derive(Default)]
pub(super) struct LockQueue(Vec<Waiter>);

impl LockQueue {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn holders(&self) -> impl Iterator<Item = HolderId> {
        self.0.iter().map(|waiter| waiter.wanted.owner.holder)
    }

    /// The holders of the locks that waiters are behind, once each.
    pub(super) fn holders_in_the_way(&self) -> BTreeSet<HolderId> {
        self.0.iter().filter_map(|waiter| waiter.behind).map(|behind| behind.owner.holder).collect()
    }

    /// The group of each waiter's holder.
    pub(super) fn groups(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|waiter| waiter.group)
    }

    /// The waiter that goes before the asking owner. An owner that waits has a `waker`. Without a `waker` the owner
    /// passes the waiters that have no offer.
    pub(super) fn before(&self, wanted: &Lock, waker: Option<&Arc<dyn LockWaker>>) -> Option<&Lock> {
        let end = waker.and_then(|waker| self.0.iter().position(|waiter| waiter.is_of(wanted, waker)));
        let earlier = &self.0[..end.unwrap_or(self.0.len())];
        let counts = |waiter: &&Waiter| {
            step();
            waker.is_some() || waiter.offered_until.is_some()
        };
        earlier.iter().filter(counts).map(|waiter| &waiter.wanted).find(|other| other.is_excluding(wanted))
    }

    /// Whether the owner of a conflicting lock waits for a lock of the asking owner. Longer circles stay.
    pub(super) fn is_in_circle(&self, wanted: &Lock, ranges: &LockedRanges) -> bool {
        ranges.has(wanted.owner)
            && self.0.iter().map(|waiter| &waiter.wanted).any(|their| {
                their.owner != wanted.owner
                    && ranges.is_in_the_way(wanted.owner, their)
                    && ranges.is_in_the_way(their.owner, wanted)
            })
    }

    /// Adds a waiter, or changes a known waiter. `behind` is a held lock that conflicts. False for a new waiter beyond
    /// the bounds.
    pub(super) fn try_wait(
        &mut self,
        wanted: Lock,
        waker: Arc<dyn LockWaker>,
        group: u64,
        behind: Option<Lock>,
        may_wait: bool,
    ) -> bool {
        let known = self.0.iter_mut().inspect(|_| step()).find(|waiter| waiter.is_of(&wanted, &waker));
        let new = Waiter { wanted, group, waker, offered_until: None, behind };
        match known {
            Some(known) => *known = new,
            None if may_wait => self.0.push(new),
            None => return false,
        }
        true
    }

    /// One does not wait any more.
    pub(super) fn leave(&mut self, wanted: &Lock, waker: &Arc<dyn LockWaker>) {
        self.0.retain(|waiter| !waiter.is_of(wanted, waker));
    }

    /// Owners elsewhere do not wait any more, by their wanted locks and the opens that they wait with.
    pub(super) fn leave_all(&mut self, is_meant: impl Fn(&Lock, u64) -> bool) {
        self.0.retain(|waiter| waiter.waker.open().is_none_or(|open| !is_meant(&waiter.wanted, open)));
    }

    /// Ends the waits of holders that are gone. A client that has missed its offer leaves the queue. Then all clients
    /// elsewhere are notified and leave the queue: the first to ask gets the lock.
    pub(super) fn expire(
        &mut self,
        now: Nanos,
        is_gone: impl Fn(HolderId) -> bool,
        wakers: &mut Vec<Arc<dyn LockWaker>>,
    ) {
        let mut is_missed = false;
        self.0.retain(|waiter| {
            step();
            let is_over = !waiter.waker.is_local() && waiter.offered_until.is_some_and(|until| until <= now);
            is_missed |= is_over;
            waiter.waker.is_local() || !(is_over || is_gone(waiter.wanted.owner.holder))
        });
        if is_missed {
            let told = self.0.iter().filter(|waiter| !waiter.waker.is_local() && waiter.offered_until.is_none());
            wakers.extend(told.map(|waiter| Arc::clone(&waiter.waker)));
            self.0.retain(|waiter| waiter.waker.is_local() || waiter.offered_until.is_some());
        }
    }

    /// The time at which the next offer to a client elsewhere ends.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.0.iter().filter(|waiter| !waiter.waker.is_local()).filter_map(|waiter| waiter.offered_until).min()
    }

    /// Makes offers to the waiters with which nothing conflicts, and adds their wakers. A waiter behind a lock is
    /// examined if the lock `may_be_gone`.
    pub(super) fn offer_to_waiters(
        &mut self,
        ranges: &LockedRanges,
        now: Nanos,
        may_be_gone: impl Fn(&Lock) -> bool,
        wakers: &mut Vec<Arc<dyn LockWaker>>,
    ) {
        let is_due = |waiter: &Waiter| {
            step();
            waiter.offered_until.is_none() && waiter.behind.as_ref().is_none_or(&may_be_gone)
        };
        let Some(first) = self.0.iter().position(is_due) else { return };
        let mut earlier = LockIndex::default();
        self.0[..first].iter().for_each(|waiter| earlier.insert(&waiter.wanted));
        for waiter in &mut self.0[first..] {
            if is_due(waiter) {
                waiter.behind = ranges.conflict(&waiter.wanted);
                let passes = || ranges.has(waiter.wanted.owner) || earlier.conflict(&waiter.wanted).is_none();
                if waiter.behind.is_none() && passes() {
                    waiter.offered_until = Some(now.after(OFFER_NS));
                    wakers.push(Arc::clone(&waiter.waker));
                }
            }
            earlier.insert(&waiter.wanted);
        }
    }
}
