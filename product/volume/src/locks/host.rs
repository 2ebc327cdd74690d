//! The locks of one file as programs of the host see them. The host knows one owner: this server, for all its owners.
//!
//! Owns: the mode of each byte on the host: the strongest mode of its owners.
//! Does not own: owners and their ranges (`ranges`), the calls to the host (the tree).
//! Invariants: a change that the host refuses has changed nothing. No call here waits.

use std::sync::Arc;

use super::owner::{HolderId, Lock, LockFamily, LockMode, LockOwner};
use super::queue::LockWaker;
use super::ranges::LockedRanges;
use super::span::Span;

/// The owner that stands for the programs of the host. No holder has its number.
const PROGRAMS: LockOwner = LockOwner { holder: HolderId(0), number: 0, family: LockFamily::Single };

/// Why the host does not lock bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostRefusal {
    /// A program of the host has a lock.
    Held,
    /// It has no room, or cannot lock this file.
    Failed,
}

/// The server's locks of a file on the host. They end with this.
pub trait HostLocks: Send + Sync + 'static {
    /// Gives bytes a mode in place of their present one; none unlocks. Does not wait.
    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal>;

    /// A program's lock in the way of a wanted one, and the program's process if the host knows it.
    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)>;

    /// Wakes a waiter once bytes may be free, if the host has room for that wait.
    fn wake_when_free(&self, span: Span, mode: LockMode, waker: Arc<dyn LockWaker>);
}

/// The host's part of a file's locks.
#[derive(Default)]
pub(super) struct OnHost(Option<Arc<dyn HostLocks>>);

impl OnHost {
    pub(super) fn get(&self) -> Option<&Arc<dyn HostLocks>> {
        self.0.as_ref()
    }

    /// Whether somebody is about to lock, or the host has a part at all.
    pub(super) fn is_in_use(&self) -> bool {
        self.0.as_ref().is_some_and(|host| Arc::strong_count(host) > 1)
    }

    /// The host shows the locks of a file from now on. A program keeps its own lock, also in the way of these.
    pub(super) fn begin(&mut self, host: Arc<dyn HostLocks>, ranges: &LockedRanges) {
        for (span, mode) in modes(ranges.overlapping(Span::WHOLE), Span::WHOLE) {
            let _ = host.set(span, mode);
        }
        self.0 = Some(host);
    }

    fn set_all(&self, modes: Vec<(Span, Option<LockMode>)>) -> Result<(), HostRefusal> {
        let Some(host) = &self.0 else { return Ok(()) };
        modes.into_iter().try_for_each(|(span, mode)| host.set(span, mode))
    }

    /// Locks an owner's bytes on the host, before the owner gets them.
    pub(super) fn lock(&self, wanted: Lock, ranges: &LockedRanges) -> Result<(), HostRefusal> {
        if self.0.is_none() {
            return Ok(());
        }
        let others = ranges.overlapping(wanted.span).filter(|held| held.owner != wanted.owner);
        let locked = self.set_all(modes(others.chain([wanted]), wanted.span));
        if locked.is_err() {
            self.follow(wanted.span, ranges);
        }
        locked
    }

    /// Brings these bytes on the host down to the modes of their owners. No program is in the way of less.
    pub(super) fn follow(&self, span: Span, ranges: &LockedRanges) {
        if self.0.is_some() {
            let _ = self.set_all(modes(ranges.overlapping(span), span));
        }
    }

    /// A program's lock in the way of a wanted one.
    pub(super) fn conflict(&self, wanted: &Lock) -> Option<Lock> {
        let (span, mode, process) = self.0.as_ref()?.conflict(wanted.span, wanted.mode)?;
        Some(Lock { owner: PROGRAMS, span, mode, process })
    }

    /// The lock in the way of a refused one. If the program has unlocked meanwhile, a lock of the same bytes stands for
    /// it.
    pub(super) fn in_the_way(&self, wanted: &Lock) -> Lock {
        self.conflict(wanted).unwrap_or(Lock { owner: PROGRAMS, process: 0, ..*wanted })
    }
}

/// Whether a lock is one of a program of the host.
pub(super) fn is_of_program(lock: &Lock) -> bool {
    lock.owner == PROGRAMS
}

/// The strongest mode of each byte of a span, from the first on.
fn modes(held: impl Iterator<Item = Lock>, span: Span) -> Vec<(Span, Option<LockMode>)> {
    // Where a mode begins or ends; a lock up to the last offset has no end.
    let mut steps: Vec<(u64, bool, i64)> = Vec::new();
    for lock in held {
        let is_exclusive = lock.mode == LockMode::Exclusive;
        steps.push((lock.span.first.max(span.first), is_exclusive, 1));
        if lock.span.last < span.last {
            steps.push((lock.span.last + 1, is_exclusive, -1));
        }
    }
    steps.sort_unstable();
    let (mut pieces, mut first, mut shared, mut exclusive) = (Vec::new(), span.first, 0, 0);
    let mut add = |first: u64, last: u64, shared: i64, exclusive: i64| {
        let mode = match () {
            () if exclusive > 0 => Some(LockMode::Exclusive),
            () if shared > 0 => Some(LockMode::Shared),
            () => None,
        };
        match pieces.last_mut() {
            Some((before, known)) if *known == mode => *before = Span { last, ..*before },
            _ => pieces.push((Span { first, last }, mode)),
        }
    };
    for (at, is_exclusive, change) in steps {
        if at > first {
            add(first, at - 1, shared, exclusive);
            first = at;
        }
        *(if is_exclusive { &mut exclusive } else { &mut shared }) += change;
    }
    add(first, span.last, shared, exclusive);
    pieces
}

#[cfg(test)]
mod tests;
