//! A device's lists of files: which file is written next, and why.
//!
//! Owns: the lists, their order. Does not own: the files, the lock around the lists (`worklist`), the orders of files
//! that may be written (`ready`).
//! Invariants: `unclean`, `unflushed` and `flushing` keep their files alive, the other lists none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use afflux_device::platform::Nanos;
use afflux_device::policy::FlushSlice;

use super::ready::{AsListed, ListPosition, Ready, ReadyEntry, ReadyPosition};

/// The most files that return to their lists at one look.
const BACK_TOGETHER: usize = 64;

/// A file with a flush owed.
pub(super) struct Unflushed<F> {
    pub(super) since: Nanos,
    pub(super) file: Arc<F>,
    /// Bytes of other files wait for the flush.
    pub(super) is_awaited: bool,
}

impl<F> Unflushed<F> {
    pub(super) fn new(file: &Arc<F>, since: Nanos) -> Self {
        Self { since, file: Arc::clone(file), is_awaited: false }
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
    /// Files with bytes that stay off the device for now.
    pub(super) withholding: BTreeMap<u32, Weak<F>>,
    /// Files with a flush owed, and since when.
    pub(super) unflushed: BTreeMap<u32, Unflushed<F>>,
    /// The slot from which on the flusher looks at them next.
    pub(super) unflushed_from: u32,
    /// Files that the flusher took for a flush, until one succeeds.
    pub(super) flushing: BTreeMap<u32, Arc<F>>,
    /// Files with changes of shape under way, and how many.
    pub(super) reshaped: BTreeMap<u32, (Arc<F>, u32)>,
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
            withholding: BTreeMap::new(),
            unflushed: BTreeMap::new(),
            unflushed_from: 0,
            flushing: BTreeMap::new(),
            reshaped: BTreeMap::new(),
            listed: 0,
            sleeps_until: None,
        }
    }
}

impl<F> Lists<F> {
    /// Takes the next file off its list. Returns the file and its entry, which is empty for a sync or a retry.
    pub(super) fn next(&mut self, slice: FlushSlice) -> Option<(Weak<F>, AsListed)> {
        let asked = |file| (file, AsListed::default());
        match slice {
            FlushSlice::Sync => return self.sync.pop_front().map(asked),
            FlushSlice::Retry => return self.retry.pop_front().map(asked),
            FlushSlice::InOrder => self.ready.next_of_round(),
            FlushSlice::Largest { hot } => self.ready.next_largest(hot),
            FlushSlice::Queued { before } => self.ready.next_queued(before),
            FlushSlice::Old { before } => self.ready.next_expired(before),
            FlushSlice::Oldest { before, hot } => self.ready.next_oldest(before, hot),
            FlushSlice::Idle { now } => self.ready.next_to_look_at(now),
        }
        .map(|entry| (entry.file, AsListed { size: entry.size, dirtied_at: entry.dirtied_at }))
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

#[cfg(test)]
mod tests;
