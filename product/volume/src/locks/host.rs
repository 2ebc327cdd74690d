//! The locks of one file as programs of the host see them. The host knows one owner: this server, for all its owners.
//!
//! Owns: the seam to the host; the mode of each byte on the host: the strongest mode of its owners.
//! Does not own: owners and their ranges (`ranges`), the moment and the order of calls (`host_calls`, `shared`), the
//! calls themselves (the tree).
//! Invariants: nobody calls the host under the table's lock. A call under a lock of a front end's state does not wait.

use std::sync::Arc;

use super::owner::{HolderId, Lock, LockFamily, LockMode, LockOwner};
use super::queue::LockWaker;
use super::span::Span;

/// The owner that stands for the programs of the host. No holder has its number.
pub(super) const PROGRAMS: LockOwner = LockOwner { holder: HolderId(0), number: 0, family: LockFamily::Single };

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
    /// Has a thread that may stand still make calls for this file. Does not wait. A host that stops drops the work.
    fn start(&self, work: Box<dyn FnOnce() + Send>);

    /// Gives bytes a mode in place of their present one; none unlocks. Waits for no program, but may stand still with
    /// its file system.
    fn set(&self, span: Span, mode: Option<LockMode>) -> Result<(), HostRefusal>;

    /// A program's lock in the way of a wanted one, and the program's process if the host knows it. May stand still,
    /// too.
    fn conflict(&self, span: Span, mode: LockMode) -> Option<(Span, LockMode, u32)>;

    /// Has a thread wake a waiter once bytes may be free, if the host has room for that wait. Does not wait itself.
    fn wake_when_free(&self, span: Span, mode: LockMode, waker: Arc<dyn LockWaker>);
}

/// Whether a lock is one of a program of the host.
pub(super) fn is_of_program(lock: &Lock) -> bool {
    lock.owner == PROGRAMS
}

/// The strongest mode of each byte of a span, from the first on.
pub(super) fn modes(held: impl Iterator<Item = Lock>, span: Span) -> Vec<(Span, Option<LockMode>)> {
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
