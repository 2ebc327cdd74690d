//! The work of a device's flusher: the dirty list (the files to write, and why), and the reasons to wake up.
//!
//! Owns: the lists, their order and their lock, the flusher's signal, drains, the shortage of frames, the slices under
//! way.
//! Does not own: the files and their marks (`listing`), the orders of files that may be written (`ready`), which work
//! is due when (policies, `writeback`).
//! Invariants: every file with dirty pages is held until they are written: `unclean`, `unflushed` and `flushing` hold
//! their files alive, the other lists none. The lock of the dirty list comes after a file's. A caller that changes a
//! file's position holds the file's lock.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use afflux_device::platform::Nanos;
use afflux_device::policy::{DirtyFiles, FlushSlice, Next};
use afflux_pages::wait::{Signal, lock};

use crate::devices::ready::{AsListed, ListPosition, ListedFiles, Ready, ReadyEntry, ReadyPosition};

/// The most files with a flush owed that are looked at in one hold of the lists' lock.
const UNFLUSHED_LOOKED_AT: usize = 1024;

/// The view of a flusher before it chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlusherView {
    /// The instant of the choice.
    pub now: Nanos,
    /// A sync waits for pages.
    pub sync_waiting: bool,
    /// Syncs have used so much of the device's time that other writes go first.
    pub sync_ahead: bool,
    /// A file that failed, or was busy, is due for a retry.
    pub retry_due: bool,
    /// Files with dirty pages that may be written now.
    pub files_ready: bool,
    /// A caller asked for everything to be written.
    pub draining: bool,
    /// A task found no frame, or waits in the admission queue.
    pub memory_short: bool,
    /// When the first retry is due.
    pub next_retry: Option<Nanos>,
    /// The interval between periodic checks; [`u64::MAX`] is never.
    pub interval_ns: u64,
    /// How often a file was put among the files that may be written.
    pub listed: u64,
}

/// The worklist of a device with files of the type `F`.
pub(crate) struct Worklist<F> {
    lists: Mutex<Lists<F>>,
    pub(super) flusher: Signal,
    /// A task found no frame.
    memory_short: AtomicBool,
    drains: AtomicU32,
    /// Slices of files under way.
    slices: AtomicU32,
    /// The flusher has other work than syncs, as far as its last choices show.
    others_due: AtomicBool,
}

/// Files that are held.
impl<F> Worklist<F> {
    pub(super) fn new() -> Self {
        Self {
            lists: Mutex::default(),
            flusher: Signal::new(),
            memory_short: AtomicBool::new(false),
            drains: AtomicU32::new(0),
            slices: AtomicU32::new(0),
            others_due: AtomicBool::new(false),
        }
    }

    /// The file in the slot has become dirty: it is held until clean.
    pub(super) fn keep(&self, slot: u32, file: Arc<F>) {
        lock(&self.lists).unclean.insert(slot, file);
    }

    /// The file is clean. Returns the reference, to be dropped without a lock held.
    pub(super) fn unlist_clean(&self, slot: u32) -> Option<Arc<F>> {
        lock(&self.lists).unclean.remove(&slot)
    }

    /// The engine is gone: nothing will be written any more, so no file is held for it.
    pub(super) fn forget_files(&self) {
        let lists = std::mem::take(&mut *lock(&self.lists));
        drop(lists);
    }

    /// The files with dirty pages or pages under writeback.
    pub(crate) fn unclean_files(&self) -> Vec<Arc<F>> {
        lock(&self.lists).unclean.values().cloned().collect()
    }

    /// The first unclean file with this slot or a higher one.
    pub(crate) fn unclean_from(&self, slot: u32) -> Option<Arc<F>> {
        lock(&self.lists).unclean.range(slot..).next().map(|(_, file)| Arc::clone(file))
    }

    /// Bytes of the file stay off the device for now.
    pub(super) fn keep_withholding(&self, slot: u32, file: &Arc<F>) {
        lock(&self.lists).withholding.insert(slot, Arc::downgrade(file));
    }

    pub(super) fn forget_withholding(&self, slot: u32) {
        lock(&self.lists).withholding.remove(&slot);
    }

    /// The first file with withheld bytes in this slot or a higher one.
    pub(crate) fn withholding_from(&self, slot: u32) -> Option<Arc<F>> {
        lock(&self.lists).withholding.range(slot..).find_map(|(_, file)| file.upgrade())
    }

    /// The number of [`Worklist::unclean_files`].
    pub(crate) fn unclean_count(&self) -> usize {
        lock(&self.lists).unclean.len()
    }

    /// A flush is owed to the file: the file is held until one succeeds.
    pub(super) fn keep_unflushed(&self, slot: u32, file: &Arc<F>, now: Nanos) {
        lock(&self.lists).unflushed.entry(slot).or_insert_with(|| Unflushed::new(file, now));
    }

    /// As [`Worklist::keep_unflushed`]; bytes of other files wait for the flush, so a dirty file gets it, too.
    pub(super) fn keep_awaited(&self, slot: u32, file: &Arc<F>, now: Nanos) {
        lock(&self.lists).unflushed.entry(slot).or_insert_with(|| Unflushed::new(file, now)).is_awaited = true;
    }

    /// Whether no successful flush has followed the device's changes to the file. A flush may be in progress.
    pub(crate) fn has_unflushed(&self, slot: u32) -> bool {
        let lists = lock(&self.lists);
        lists.unflushed.contains_key(&slot) || lists.flushing.contains_key(&slot)
    }

    /// No flush is owed to the file any more. The caller has a reference to it.
    pub(crate) fn forget_unflushed(&self, slot: u32) {
        let mut lists = lock(&self.lists);
        lists.unflushed.remove(&slot);
        lists.flushing.remove(&slot);
    }

    /// A change of the file's shape begins. It will owe a flush.
    pub(super) fn reshape_begins(&self, slot: u32, file: &Arc<F>) {
        lock(&self.lists).reshaped.entry(slot).or_insert_with(|| (Arc::clone(file), 0)).1 += 1;
    }

    /// A change of the file's shape has ended. The caller has a reference to the file.
    pub(super) fn reshape_ends(&self, slot: u32) {
        let mut lists = lock(&self.lists);
        if let Entry::Occupied(mut found) = lists.reshaped.entry(slot) {
            found.get_mut().1 -= 1;
            if found.get().1 == 0 {
                found.remove();
            }
        }
    }

    /// Files with changes of shape under way.
    pub(crate) fn reshaped_files(&self) -> Vec<Arc<F>> {
        lock(&self.lists).reshaped.values().map(|(file, _)| Arc::clone(file)).collect()
    }

    /// Files that a drain has to sync: with dirty pages, or with a flush owed.
    pub(crate) fn files_to_drain(&self) -> Vec<Arc<F>> {
        let lists = lock(&self.lists);
        let mut files = lists.unclean.clone();
        files.extend(lists.flushing.iter().map(|(slot, file)| (*slot, Arc::clone(file))));
        files.extend(lists.unflushed.iter().map(|(slot, kept)| (*slot, Arc::clone(&kept.file))));
        files.into_values().collect()
    }

    /// Up to `count` files with a flush owed since `before` or longer. A dirty file is among them only if bytes of
    /// other files wait for its flush. They are held until a flush succeeds, but not returned again until another flush
    /// is owed. Visits [`UNFLUSHED_LOOKED_AT`] files at most, from where the last call ended, to the last file. Returns
    /// whether there may be more behind these.
    pub(crate) fn take_unflushed(&self, before: Nanos, count: usize) -> (Vec<Arc<F>>, bool) {
        let mut lists = lock(&self.lists);
        let (mut slots, mut looked_at, mut last, mut more) = (Vec::new(), 0, None, false);
        let from = lists.unflushed_from;
        for (slot, kept) in lists.unflushed.range(from..) {
            if slots.len() == count || looked_at == UNFLUSHED_LOOKED_AT {
                more = true;
                break;
            }
            (looked_at, last) = (looked_at + 1, Some(*slot));
            if kept.since <= before && (kept.is_awaited || !lists.unclean.contains_key(slot)) {
                slots.push(*slot);
            }
        }
        lists.unflushed_from = last.filter(|_| more).map_or(0, |last| last + 1);
        let taken: Vec<Arc<F>> =
            slots.iter().filter_map(|slot| lists.unflushed.remove(slot)).map(|kept| kept.file).collect();
        lists.flushing.extend(slots.into_iter().zip(taken.iter().cloned()));
        (taken, more)
    }
}

/// Files that wait for a slice.
impl<F> Worklist<F> {
    /// Lists a file that was in no list. Wakes the flusher if the file has to be looked at before it wants to wake up.
    pub(super) fn list_dirty(&self, entry: ReadyEntry<F>) -> ReadyPosition {
        let mut lists = lock(&self.lists);
        let look_at = entry.look_at;
        let position = lists.push(entry, ListPosition::Dirty);
        if lists.sleeps_until.is_some_and(|until| look_at < until) {
            lists.sleeps_until = None;
            drop(lists);
            self.flusher.raise();
        }
        position
    }

    /// Lists a file that had its slice and has more.
    pub(super) fn list_more(&self, entry: ReadyEntry<F>) -> ReadyPosition {
        lock(&self.lists).push(entry, ListPosition::More)
    }

    /// The file in the slot has `pages` dirty pages. Returns its new position, if it is still listed.
    pub(super) fn grow(&self, position: ReadyPosition, slot: u32, pages: u64) -> Option<ReadyPosition> {
        lock(&self.lists).ready.grow(position, slot, pages)
    }

    /// Makes the flusher come back to a file at `at`, beside its other reasons.
    pub(super) fn list_retry(&self, file: Weak<F>, at: Nanos) {
        lock(&self.lists).push_later(at, Later::Retry(file));
        self.flusher.raise();
    }

    /// Lists a file that a sync waits for.
    pub(super) fn list_sync(&self, file: Weak<F>) {
        lock(&self.lists).sync.push_back(file);
        self.flusher.raise();
    }

    /// Lists a file that a sync waits for at `at`.
    pub(super) fn list_sync_later(&self, file: Weak<F>, at: Nanos) {
        lock(&self.lists).push_later(at, Later::Sync(file));
    }

    /// Whether a sync waits for a slice.
    pub(super) fn has_sync(&self) -> bool {
        !lock(&self.lists).sync.is_empty()
    }

    /// Takes the next file for a slice off its list. Returns the file and its entry, which is empty for a sync or a
    /// retry. Passes over dropped files.
    pub(crate) fn next(&self, slice: FlushSlice) -> Option<(Arc<F>, AsListed)> {
        loop {
            let (file, listed) = lock(&self.lists).next(slice)?;
            if let Some(file) = file.upgrade() {
                return Some((file, listed));
            }
        }
    }

    /// The number of files in each list.
    pub(crate) fn listed_files(&self) -> ListedFiles {
        lock(&self.lists).ready.counts()
    }
}

/// The flusher's sleep.
impl<F> Worklist<F> {
    /// The view for the flusher's next choice. Files whose pause is over return to their lists first. `sync_ahead` and
    /// `writers_waiting` come from the device's other parts.
    pub(super) fn view(&self, now: Nanos, interval_ns: u64, sync_ahead: bool, writers_waiting: bool) -> FlusherView {
        let mut lists = lock(&self.lists);
        lists.requeue_due(now);
        FlusherView {
            now,
            sync_waiting: !lists.sync.is_empty(),
            sync_ahead,
            retry_due: !lists.retry.is_empty(),
            files_ready: !lists.ready.is_empty(),
            draining: self.drains.load(Ordering::Relaxed) > 0,
            memory_short: self.memory_short.load(Ordering::Relaxed) || writers_waiting,
            next_retry: lists.next_later(),
            interval_ns,
            listed: lists.listed,
        }
    }

    /// The flusher may sleep until then, unless a file was listed since it counted `listed`. Files to check earlier
    /// will wake it. Returns whether it may sleep.
    pub(crate) fn may_sleep(&self, until: Nanos, listed: u64) -> bool {
        let mut lists = lock(&self.lists);
        let may = lists.listed == listed;
        if may {
            lists.sleeps_until = Some(until);
        }
        may
    }

    /// Wakes the flusher because a task is short of frames.
    pub(crate) fn request_reclaim_writes(&self) {
        if !self.memory_short.swap(true, Ordering::Relaxed) {
            self.flusher.raise();
        }
    }

    /// The flusher has written all it can for tasks short of frames; returns whether there were any.
    pub(crate) fn take_reclaim_writes(&self) -> bool {
        self.memory_short.swap(false, Ordering::Relaxed)
    }

    /// Has everything written until the answer is dropped.
    pub(crate) fn drain(&self) -> Draining<'_> {
        self.drains.fetch_add(1, Ordering::Relaxed);
        self.flusher.raise();
        Draining(&self.drains)
    }

    /// The flusher has made a choice. While syncs go first, a slice for one says nothing about other work.
    pub(crate) fn note_choice(&self, choice: Next, sync_ahead: bool) {
        let others_due = match choice {
            Next::WaitUntil(_) => false,
            Next::FlushSlice(FlushSlice::Sync) if !sync_ahead => return,
            Next::FlushSlice(slice) => slice != FlushSlice::Sync,
        };
        self.others_due.store(others_due, Ordering::Relaxed);
    }

    /// Whether the flusher has other work than syncs, as of its last choice.
    pub(crate) fn are_others_due(&self) -> bool {
        self.others_due.load(Ordering::Relaxed)
    }

    /// A file has its slice.
    pub(crate) fn slice_begins(&self) {
        self.slices.fetch_add(1, Ordering::Relaxed);
    }

    /// The flusher's slice of a file has ended.
    pub(crate) fn slice_ends(&self) {
        let before = self.slices.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a turn ends that did not begin");
    }

    /// Whether a file has its slice.
    pub(super) fn has_slices(&self) -> bool {
        self.slices.load(Ordering::Relaxed) > 0
    }
}

impl<F> DirtyFiles for Worklist<F> {
    fn has_any(&self) -> bool {
        !lock(&self.lists).ready.is_empty()
    }

    fn dirty_since(&self, hot: bool) -> Option<Nanos> {
        lock(&self.lists).ready.oldest(hot)
    }

    fn has_round(&self) -> bool {
        lock(&self.lists).ready.has_round()
    }

    fn look_at(&self) -> Option<Nanos> {
        lock(&self.lists).ready.look_at()
    }
}

/// Has everything on the device written while this lives.
pub(crate) struct Draining<'a>(&'a AtomicU32);

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The most files that return to their lists at one time.
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
    /// The slot from which on the flusher visits them next.
    pub(super) unflushed_from: u32,
    /// Files that the flusher took for a flush, until one succeeds.
    pub(super) flushing: BTreeMap<u32, Arc<F>>,
    /// Files with changes of shape under way, and how many.
    pub(super) reshaped: BTreeMap<u32, (Arc<F>, u32)>,
    /// How often a file was put among the files that may be written.
    pub(super) listed: u64,
    /// Until when the flusher sleeps, if it wants to be woken for files to check before that.
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
