//! A device's lists of files: which is written next, and why.
//!
//! Owns: the lists, their order. Does not own: the files, the lock around the lists (`state`).
//! Invariants: `unclean` and `unflushed` keep their files alive, the other lists none. A file is in at most one of
//! `dirty` and `io`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use super::file::FileInner;
use crate::platform::Nanos;

/// Why a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushReason {
    /// A sync waits for it.
    Sync,
    /// Its last write failed, or it was busy, and the pause is over.
    Retry,
    /// The device has too much that is dirty, or somebody needs the room.
    Background,
    /// It has been dirty since then, which is too long.
    Expired {
        /// The latest instant that is too long ago.
        before: Nanos,
    },
}

#[derive(Default)]
pub(super) struct Lists {
    /// Files in the order in which they became dirty.
    pub(super) dirty: VecDeque<Entry>,
    /// Files being worked on, a turn each.
    io: VecDeque<Entry>,
    /// Files that had their turn and have more: with the next that come from `dirty`.
    pub(super) more: VecDeque<Entry>,
    /// Files that a sync waits for.
    pub(super) sync: VecDeque<Weak<FileInner>>,
    /// Files whose pause is over.
    pub(super) retry: VecDeque<Weak<FileInner>>,
    /// Files to come back to later: the last write failed, or a copy was in progress.
    pub(super) later: Vec<(Nanos, Later)>,
    pub(super) unclean: BTreeMap<u32, Arc<FileInner>>,
    /// Files that a flush is owed, and since when.
    pub(super) unflushed: BTreeMap<u32, (Nanos, Arc<FileInner>)>,
}

impl Lists {
    pub(super) fn any_ready(&self) -> bool {
        !(self.dirty.is_empty() && self.io.is_empty() && self.more.is_empty())
    }

    /// When the file that has been dirty longest became so, or the first found for which that is
    /// long `enough`.
    pub(super) fn oldest(&self, enough: impl Fn(Nanos) -> bool) -> Option<Nanos> {
        let mut oldest = None;
        for Entry { dirtied_at, .. } in self.dirty.iter().take(1).chain(&self.io).chain(&self.more) {
            if enough(*dirtied_at) {
                return Some(*dirtied_at);
            }
            oldest = Some(oldest.map_or(*dirtied_at, |oldest: Nanos| oldest.min(*dirtied_at)));
        }
        oldest
    }

    /// Takes what is next off its list.
    pub(super) fn next(&mut self, reason: FlushReason) -> Option<Weak<FileInner>> {
        let Self { dirty, io, more, sync, retry, .. } = self;
        match reason {
            FlushReason::Sync => sync.pop_front(),
            FlushReason::Retry => retry.pop_front(),
            FlushReason::Background => {
                if io.is_empty() {
                    io.append(more);
                    io.append(dirty);
                }
                io.pop_front().map(|entry| entry.file)
            }
            FlushReason::Expired { before } => {
                let expired = |entry: &Entry| entry.dirtied_at <= before;
                for list in [io, more, dirty] {
                    if let Some(at) = list.iter().position(expired) {
                        return list.remove(at).map(|entry| entry.file);
                    }
                }
                None
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) file: Weak<FileInner>,
    pub(super) dirtied_at: Nanos,
}

pub(super) enum Later {
    Retry(Weak<FileInner>),
    Sync(Weak<FileInner>),
}

impl Lists {
    /// Files whose pause is over go back to their lists.
    pub(super) fn bring_back(&mut self, now: Nanos) {
        let due = |(at, _): &(Nanos, Later)| *at <= now;
        for (_, later) in self.later.extract_if(.., |entry| due(entry)).collect::<Vec<_>>() {
            match later {
                Later::Retry(file) => self.retry.push_back(file),
                Later::Sync(file) => self.sync.push_back(file),
            }
        }
    }
}

/// Since when a file counts as dirty that is put behind the youngest of those without a turn: as before, but
/// since now if that one is younger, so that the list stays in order (kernel-facts, section 2.2).
pub(super) fn redirtied_at(dirtied_at: Nanos, youngest: Option<Nanos>, now: Nanos) -> Nanos {
    if youngest.is_some_and(|youngest| dirtied_at < youngest) { now } else { dirtied_at }
}

#[cfg(test)]
mod tests;
