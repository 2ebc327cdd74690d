//! The owners that wait for bytes of one file.
//!
//! Owns: their order, their turns, the time for which a turn of a distant client is kept.
//! Does not own: the ranges (`ranges`), the wait itself (front ends, `data::locking`).
//! Invariants: nobody has a turn while a lock or an earlier waiter is in its way. A turn of a caller on this host is
//! kept until the caller has taken it or has gone; that of a client elsewhere for [`TURN_NS`].

use std::sync::Arc;

use afflux_engine::Nanos;

use super::ranges::{HolderId, Lock, LockOwner, LockedRanges};

/// Time for which freed bytes are kept for a client that was told of them. A client that is there asks within
/// milliseconds.
const TURN_NS: u64 = 3 * Nanos::SECOND;

/// Tells one who waits that it may ask again.
pub trait LockWaker: Send + Sync + 'static {
    /// It is the waiter's turn. Must not wait, and must not ask for locks.
    fn wake(&self);

    /// Whether the waiter is a caller on this host: such a caller takes its turn, or leaves the queue.
    fn is_local(&self) -> bool;
}

struct Waiter {
    wanted: Lock,
    /// The group of its holder.
    group: u64,
    waker: Arc<dyn LockWaker>,
    /// It is its turn, until then.
    turn: Option<Nanos>,
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

    /// The group of each waiter's holder.
    pub(super) fn groups(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|waiter| waiter.group)
    }

    /// The waiter that goes before one who asks. `waker` is of one who waits itself; others pass those without a turn.
    pub(super) fn before(&self, wanted: &Lock, waker: Option<&Arc<dyn LockWaker>>) -> Option<&Lock> {
        let end = waker.and_then(|waker| self.0.iter().position(|waiter| waiter.is_of(wanted, waker)));
        let earlier = &self.0[..end.unwrap_or(self.0.len())];
        let counts = |waiter: &&Waiter| waker.is_some() || waiter.turn.is_some();
        earlier.iter().filter(counts).map(|waiter| &waiter.wanted).find(|other| other.is_excluding(wanted))
    }

    /// Whether an owner in the way of this lock waits for a lock of the same owner as this one. Longer circles stay.
    pub(super) fn is_in_circle(&self, wanted: &Lock, ranges: &LockedRanges) -> bool {
        let waits_for_own = |other: Lock| {
            let waiting = self.0.iter().filter(|waiter| waiter.wanted.owner == other.owner);
            waiting
                .map(|waiter| waiter.wanted)
                .any(|their| ranges.of(wanted.owner).any(|held| held.is_excluding(&their)))
        };
        ranges.has(wanted.owner) && ranges.conflicts(*wanted).any(waits_for_own)
    }

    /// One waits, behind the others if it is new. False for a new one without room.
    pub(super) fn try_wait(&mut self, wanted: Lock, waker: Arc<dyn LockWaker>, group: u64, has_room: bool) -> bool {
        if let Some(known) = self.0.iter_mut().find(|waiter| waiter.is_of(&wanted, &waker)) {
            *known = Waiter { wanted, group, waker, turn: None };
            return true;
        }
        if has_room {
            self.0.push(Waiter { wanted, group, waker, turn: None });
        }
        has_room
    }

    /// One does not wait any more.
    pub(super) fn leave(&mut self, wanted: &Lock, waker: &Arc<dyn LockWaker>) {
        self.0.retain(|waiter| !waiter.is_of(wanted, waker));
    }

    /// Owners do not wait any more, elsewhere.
    pub(super) fn leave_all(&mut self, is_meant: impl Fn(&LockOwner) -> bool) {
        self.0.retain(|waiter| waiter.waker.is_local() || !is_meant(&waiter.wanted.owner));
    }

    /// Ends the turns that nobody has taken, and the waits of holders that are gone.
    pub(super) fn expire(&mut self, now: Nanos, is_gone: impl Fn(HolderId) -> bool) {
        self.0.retain(|waiter| {
            let is_over = waiter.turn.is_some_and(|until| until < now);
            waiter.waker.is_local() || !(is_over || is_gone(waiter.wanted.owner.holder))
        });
    }

    /// Gives turns to all whose way is free. Adds those to wake.
    pub(super) fn give_turns(&mut self, ranges: &LockedRanges, now: Nanos, wakers: &mut Vec<Arc<dyn LockWaker>>) {
        for at in 0..self.0.len() {
            let (earlier, rest) = self.0.split_at_mut(at);
            let Some(waiter) = rest.first_mut().filter(|waiter| waiter.turn.is_none()) else { continue };
            let is_behind = earlier.iter().any(|other| other.wanted.is_excluding(&waiter.wanted));
            if is_behind && !ranges.has(waiter.wanted.owner) || ranges.conflicts(waiter.wanted).next().is_some() {
                continue;
            }
            waiter.turn = Some(now.after(TURN_NS));
            wakers.push(Arc::clone(&waiter.waker));
        }
    }
}
