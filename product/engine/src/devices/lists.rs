//! A device's lists of files: which file is written next, and why.
//!
//! Owns: the lists, their order. Does not own: the files, the lock around the lists (`agenda`), the orders of files
//! that may be written (`ready`).
//! Invariants: `unclean` and `unflushed` keep their files alive, the other lists none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use super::ready::{ListPosition, Ready, ReadyEntry, ReadyPosition, Size};
use crate::platform::Nanos;

/// The most files that return to their lists at one look.
const BACK_TOGETHER: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushReason {
    /// A sync waits for it.
    Sync,
    /// Its last write failed, or it was busy, and the pause is over.
    Retry,
    /// The device has too many dirty pages, or a task needs the room. It is the file's turn.
    Background,
    /// As `Background`, and no other file has twice as many dirty pages. Hot files are passed over unless `hot`.
    Largest {
        /// Whether to take hot files, too.
        hot: bool,
    },
    /// The file has been dirty since `before`, which is too long. It is the first in the order of turns.
    Expired {
        /// The latest instant that is too long ago.
        before: Nanos,
    },
    /// As `Expired`, and no other file has been dirty for longer. Hot files are passed over unless `hot`.
    Oldest {
        /// The latest instant that is too long ago.
        before: Nanos,
        /// Whether to take hot files, too.
        hot: bool,
    },
    /// The device would idle, and the file has been left alone for long enough.
    Idle {
        /// The present instant.
        now: Nanos,
    },
}

impl FlushReason {
    /// Whether the file is written in passes of its own, independent of the pages that a sync wrote meanwhile.
    pub(crate) fn is_by_passes(self) -> bool {
        matches!(self, Self::Largest { .. } | Self::Oldest { .. } | Self::Idle { .. })
    }
}

pub(super) struct Lists<F> {
    /// Files that may be written.
    pub(super) ready: Ready<F>,
    /// Files that a sync waits for.
    pub(super) sync: VecDeque<Weak<F>>,
    /// Files whose pause is over.
    pub(super) retry: VecDeque<Weak<F>>,
    /// Files to come back to, and when: the last write failed, or a copy was in progress.
    later: BTreeMap<(Nanos, u64), Later<F>>,
    /// How often a file was put there. Files with the same instant come back in this order.
    put_off: u64,
    pub(super) unclean: BTreeMap<u32, Arc<F>>,
    /// Files with a flush owed, and since when.
    pub(super) unflushed: BTreeMap<u32, (Nanos, Arc<F>)>,
    /// How often a file was put among the files that may be written.
    pub(super) listed: u64,
    /// Until when the flusher sleeps, if it wants to be woken for files to look at before that.
    pub(super) sleeps_until: Option<Nanos>,
}

impl<F> Default for Lists<F> {
    fn default() -> Self {
        Self {
            ready: Ready::default(),
            sync: VecDeque::new(),
            retry: VecDeque::new(),
            later: BTreeMap::new(),
            put_off: 0,
            unclean: BTreeMap::new(),
            unflushed: BTreeMap::new(),
            listed: 0,
            sleeps_until: None,
        }
    }
}

impl<F> Lists<F> {
    /// Takes the next file off its list; returns it with its size there, which is 0 for a sync or a retry.
    pub(super) fn next(&mut self, reason: FlushReason) -> Option<(Weak<F>, Size)> {
        let asked = |file| (file, Size::default());
        match reason {
            FlushReason::Sync => return self.sync.pop_front().map(asked),
            FlushReason::Retry => return self.retry.pop_front().map(asked),
            FlushReason::Background => self.ready.next_in_turn(),
            FlushReason::Largest { hot } => self.ready.next_largest(hot),
            FlushReason::Expired { before } => self.ready.next_expired(before),
            FlushReason::Oldest { before, hot } => self.ready.next_oldest(before, hot),
            FlushReason::Idle { now } => self.ready.next_to_look_at(now),
        }
        .map(|entry| (entry.file, entry.size))
    }
}

pub(super) enum Later<F> {
    Retry(Weak<F>),
    Sync(Weak<F>),
}

impl<F> Lists<F> {
    /// Puts a file that may be written behind others.
    pub(super) fn push(&mut self, entry: ReadyEntry<F>, behind: ListPosition) -> ReadyPosition {
        self.listed += 1;
        self.ready.push(entry, behind)
    }

    /// Makes the flusher come back to a file at `at`.
    pub(super) fn push_later(&mut self, at: Nanos, later: Later<F>) {
        self.later.insert((at, self.put_off), later);
        self.put_off += 1;
    }

    /// When the flusher comes back to the first file.
    pub(super) fn next_later(&self) -> Option<Nanos> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns files whose pause is over to their lists, only some if there are many: the flusher asks again before it
    /// sleeps. Returns their number.
    pub(super) fn requeue_due(&mut self, now: Nanos) -> usize {
        for brought in 0..BACK_TOGETHER {
            let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) else { return brought };
            match first.remove() {
                Later::Retry(file) => self.retry.push_back(file),
                Later::Sync(file) => self.sync.push_back(file),
            }
        }
        BACK_TOGETHER
    }
}

/// The age of a file that is put behind the youngest file without a turn. Unchanged, or `now` if that file is younger,
/// so that the list stays in order (kernel-facts, section 2.2).
pub(super) fn redirtied_at(dirtied_at: Nanos, youngest: Option<Nanos>, now: Nanos) -> Nanos {
    if youngest.is_some_and(|youngest| dirtied_at < youngest) { now } else { dirtied_at }
}

#[cfg(test)]
mod tests;
