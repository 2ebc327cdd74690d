//! A device of the engine: its limits, its lists of dirty files, its requests in flight.
//!
//! Owns: who is to be written next, the slots for requests, the dirty pages' budget.
//! Does not own: the files' pages, the hardware (`Device`).
//! Invariants: every file with dirty pages is in `unclean`, so that it lives until they are written;
//! the other lists keep none alive, so that a removed file's space is free at once.
//! A file is in at most one of `dirty` and `io`. This lock comes after a file's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::bandwidth::Bandwidth;
use super::complete::requeue;
use super::congestion::Congestion;
use super::schedule::{FlushReason, View};
use crate::cache::file::{FileInner, FileState};
use crate::cache::wait::{Permits, Signal, WaitQueue, lock};
use crate::cache::{Cache, PAGE_BYTES};
use crate::dirty::DirtyTotals;
use crate::error::DeviceError;
use crate::platform::{Device, Nanos};
use crate::settings::{DeviceSettings, Knob, Settings};
use crate::throttle::pauses::PauseTally;
use crate::throttle::{Kept, PauseStatus};

/// A device of an engine, by number from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct DeviceId(pub u32);

/// A device as the engine keeps it.
pub(crate) struct DeviceState {
    pub(crate) id: DeviceId,
    pub(crate) name: String,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) settings: DeviceSettings,
    /// Dirty pages, those under writeback included. Changed through `dirty`, which keeps the sum.
    pub(crate) budget: Permits<DeviceError>,
    /// What all devices have dirty.
    pub(crate) totals: Arc<DirtyTotals>,
    /// Requests in flight.
    pub(crate) slots: Permits<DeviceError>,
    /// Frames that reads in flight, or about to be, hold: a device that hangs must not take all.
    pub(crate) reading: Permits<DeviceError>,
    pub(crate) flusher: Signal,
    lists: Mutex<Lists>,
    pub(crate) writeback_pages: AtomicU64,
    /// Pages dirtied since the start.
    pub(crate) dirtied_pages: AtomicU64,
    /// Pages written since the start.
    pub(crate) written_pages: AtomicU64,
    /// Requests that writes have, or are about to submit.
    pub(crate) writes_in_flight: AtomicU32,
    pub(crate) congestion: Congestion,
    /// Turns of files under way.
    pub(crate) flushing: AtomicU32,
    /// What the law in force remembers of the device.
    pub(crate) law_memory: Mutex<Kept>,
    /// The law says that the device is over.
    pub(crate) exceeded: AtomicBool,
    pub(crate) pauses: PauseTally,
    /// Those who wait for a write to end, to have its request.
    pub(crate) write_ended: WaitQueue,
    pub(crate) memory_short: AtomicBool,
    pub(crate) draining: AtomicU32,
    /// Space gets small: what is dirty has its place, and what is written gets one first.
    pub(crate) reserving: AtomicBool,
    pub(crate) files_failed: AtomicU64,
    /// Pages whose last write failed, and the room on top of the limit that was given for them: see
    /// [`failing`](crate::dirty::failing).
    pub(crate) failed_pages: AtomicU64,
    pub(crate) failed_room: AtomicU64,
    usage: Mutex<Usage>,
}

#[derive(Default)]
struct Lists {
    /// Files in the order in which they became dirty.
    dirty: VecDeque<Entry>,
    /// Files being worked on, a turn each.
    io: VecDeque<Entry>,
    /// Files that had their turn and have more: with the next that come from `dirty`.
    more: VecDeque<Entry>,
    /// Files that a sync waits for.
    sync: VecDeque<Weak<FileInner>>,
    /// Files whose pause is over.
    retry: VecDeque<Weak<FileInner>>,
    /// Files to come back to later: the last write failed, or a copy was in progress.
    later: Vec<(Nanos, Later)>,
    unclean: BTreeMap<u32, Arc<FileInner>>,
    /// Files that a flush is owed, and since when.
    unflushed: BTreeMap<u32, (Nanos, Arc<FileInner>)>,
}

impl Lists {
    /// When the file that has been dirty longest became so, or the first found for which that is
    /// long `enough`.
    fn oldest(&self, enough: impl Fn(Nanos) -> bool) -> Option<Nanos> {
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
    fn next(&mut self, reason: FlushReason, expired_before: Nanos) -> Option<Weak<FileInner>> {
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
            FlushReason::Expired => {
                let expired = |entry: &Entry| entry.dirtied_at <= expired_before;
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
struct Entry {
    file: Weak<FileInner>,
    dirtied_at: Nanos,
}

enum Later {
    Retry(Weak<FileInner>),
    Sync(Weak<FileInner>),
}

#[derive(Default)]
struct Usage {
    in_flight: u32,
    busy_since: Nanos,
    busy_ns: u64,
    written_bytes: u64,
    bandwidth: Bandwidth,
    /// Failed writes and flushes since the last that succeeded.
    failures_in_row: u32,
    last_error: Option<DeviceError>,
}

/// Files that failed one after the other, with no write in between that succeeded, after which all writers that
/// wait for room are told instead of kept waiting.
const FAILURES_BEFORE_TELLING: u32 = 3;

/// Since when a file counts as dirty that is put behind the youngest of those without a turn: as before, but
/// since now if that one is younger, so that the list stays in order (kernel-facts, section 2.2).
fn redirtied_at(dirtied_at: Nanos, youngest: Option<Nanos>, now: Nanos) -> Nanos {
    if youngest.is_some_and(|youngest| dirtied_at < youngest) { now } else { dirtied_at }
}

impl DeviceState {
    pub(crate) fn new(
        id: DeviceId,
        name: &str,
        device: Arc<dyn Device>,
        totals: Arc<DirtyTotals>,
        law_memory: Kept,
    ) -> Self {
        let depth = u64::from(device.limits().depth.max(1));
        Self {
            id,
            name: name.to_owned(),
            device,
            settings: DeviceSettings::default(),
            budget: Permits::new(0),
            totals,
            slots: Permits::new(depth),
            reading: Permits::new(0),
            flusher: Signal::new(),
            lists: Mutex::default(),
            writeback_pages: AtomicU64::new(0),
            dirtied_pages: AtomicU64::new(0),
            written_pages: AtomicU64::new(0),
            writes_in_flight: AtomicU32::new(0),
            congestion: Congestion::default(),
            flushing: AtomicU32::new(0),
            law_memory: Mutex::new(law_memory),
            exceeded: AtomicBool::new(false),
            pauses: PauseTally::default(),
            write_ended: WaitQueue::new(),
            memory_short: AtomicBool::new(false),
            draining: AtomicU32::new(0),
            reserving: AtomicBool::new(false),
            files_failed: AtomicU64::new(0),
            failed_pages: AtomicU64::new(0),
            failed_room: AtomicU64::new(0),
            usage: Mutex::default(),
        }
    }

    pub(crate) fn knob(&self, engine: &Settings, knob: Knob) -> u64 {
        self.settings.get(engine, knob)
    }

    /// Most writes in flight: the knob, but a quarter of the device's slots is left to readers.
    pub(crate) fn write_depth(&self, engine: &Settings) -> u32 {
        let depth = self.device.limits().depth.max(1);
        let knob = self.knob(engine, Knob::WriteDepth) as u32;
        knob.min((depth - depth / 4).max(1))
    }

    /// Dirty pages above which the flusher starts, where devices have equal parts.
    pub(crate) fn background_pages(&self, cache: &Cache) -> u64 {
        match self.knob(&cache.settings, Knob::BackgroundBytes) {
            0 => crate::dirty::limit_pages(cache) * self.knob(&cache.settings, Knob::BackgroundRatio) / 100,
            bytes => bytes / PAGE_BYTES,
        }
    }

    /// Dirty pages above which the flusher starts because writing them takes too long: bandwidth times
    /// `dirty_background_centisecs` / 100. Nothing if that is off. A device of which nothing is known is
    /// written to at once, so that it is.
    pub(crate) fn background_time_pages(&self, settings: &Settings) -> Option<u64> {
        let centisecs = self.knob(settings, Knob::BackgroundCentisecs);
        (centisecs > 0).then(|| self.bandwidth_pages().unwrap_or(0).saturating_mul(centisecs) / 100)
    }

    /// The lower of the two, where devices have equal parts.
    fn background_pages_in_force(&self, cache: &Cache) -> u64 {
        let time_pages = self.background_time_pages(&cache.settings).unwrap_or(u64::MAX);
        self.background_pages(cache).min(time_pages)
    }

    /// Pages a second that the device writes while it has something to write, once that is known.
    pub(crate) fn bandwidth_pages(&self) -> Option<u64> {
        lock(&self.usage).bandwidth.bytes_per_second().map(|bytes| bytes / PAGE_BYTES)
    }

    /// Pages that are dirty and not under writeback.
    pub(crate) fn reclaimable_pages(&self) -> u64 {
        self.budget.used().saturating_sub(self.writeback_pages.load(Ordering::Relaxed))
    }

    pub(crate) fn write_begins(&self, now: Nanos) {
        lock(&self.usage).bandwidth.begins(now);
    }

    pub(crate) fn write_ends(&self, now: Nanos, bytes: u64) {
        lock(&self.usage).bandwidth.ends(now, bytes);
    }

    /// The file has become dirty: it is kept until clean. Call with the file's lock held.
    pub(crate) fn keep(&self, file: &Arc<FileInner>) {
        lock(&self.lists).unclean.insert(file.slot, Arc::clone(file));
    }

    /// The file is clean. Returns the reference, to be dropped without a lock held.
    pub(crate) fn let_be(&self, file: &FileInner) -> Option<Arc<FileInner>> {
        lock(&self.lists).unclean.remove(&file.slot)
    }

    /// The engine is gone: nothing will be written any more, so no file is kept for it.
    pub(crate) fn let_all_be(&self) {
        let lists = std::mem::take(&mut *lock(&self.lists));
        drop(lists);
    }

    pub(crate) fn unclean_files(&self) -> Vec<Arc<FileInner>> {
        lock(&self.lists).unclean.values().cloned().collect()
    }

    /// A flush is owed to the file: it is kept until it has been. Call with the file's lock held.
    pub(crate) fn keep_unflushed(&self, file: &Arc<FileInner>, now: Nanos) {
        lock(&self.lists).unflushed.entry(file.slot).or_insert_with(|| (now, Arc::clone(file)));
    }

    pub(crate) fn forget_unflushed(&self, file: &FileInner) {
        // The caller has a reference of its own, so this one is not the last.
        lock(&self.lists).unflushed.remove(&file.slot);
    }

    /// Counts one write more in flight unless there are `most`, in a queue of `depth`.
    pub(crate) fn try_count_write(&self, most: u32, depth: u32) -> bool {
        let counted = self
            .writes_in_flight
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        counted.inspect(|before| self.congestion.grown(before + 1, depth)).is_ok()
    }

    /// Files that a drain has to sync: with dirty pages, or with a flush owed.
    pub(crate) fn files_to_drain(&self) -> Vec<Arc<FileInner>> {
        let lists = lock(&self.lists);
        let mut files = lists.unclean.clone();
        files.extend(lists.unflushed.iter().map(|(slot, (_, file))| (*slot, Arc::clone(file))));
        files.into_values().collect()
    }

    /// Up to `count` clean files to which a flush has been owed since `before` or longer; they are
    /// not returned again until something is owed anew.
    pub(crate) fn take_unflushed(&self, before: Nanos, count: usize) -> Vec<Arc<FileInner>> {
        let mut lists = lock(&self.lists);
        let due = |(slot, (since, _)): &(&u32, &(Nanos, Arc<FileInner>))| {
            *since <= before && !lists.unclean.contains_key(slot)
        };
        let slots: Vec<u32> = lists.unflushed.iter().filter(due).map(|(slot, _)| *slot).take(count).collect();
        slots.iter().filter_map(|slot| lists.unflushed.remove(slot)).map(|(_, file)| file).collect()
    }

    pub(crate) fn unclean_count(&self) -> usize {
        lock(&self.lists).unclean.len()
    }

    /// Queues a file that was in no list.
    pub(crate) fn queue_dirty(&self, file: &Arc<FileInner>, dirtied_at: Nanos) {
        lock(&self.lists).dirty.push_back(Entry { file: Arc::downgrade(file), dirtied_at });
    }

    /// Queues a file behind those that have had no turn (the kernel's `redirty_tail`). Returns since when it
    /// counts as dirty.
    pub(crate) fn queue_redirtied(&self, file: &Arc<FileInner>, dirtied_at: Nanos, now: Nanos) -> Nanos {
        let dirty = &mut lock(&self.lists).dirty;
        let dirtied_at = redirtied_at(dirtied_at, dirty.back().map(|youngest| youngest.dirtied_at), now);
        dirty.push_back(Entry { file: Arc::downgrade(file), dirtied_at });
        dirtied_at
    }

    /// Queues a file that had its turn and has more.
    pub(crate) fn queue_more(&self, file: &Arc<FileInner>, dirtied_at: Nanos) {
        lock(&self.lists).more.push_back(Entry { file: Arc::downgrade(file), dirtied_at });
    }

    /// Has the flusher come back to a file at `at`, whatever else it is queued for.
    pub(crate) fn queue_later(&self, file: &Arc<FileInner>, at: Nanos) {
        lock(&self.lists).later.push((at, Later::Retry(Arc::downgrade(file))));
        self.flusher.raise();
    }

    /// Queues a file that a sync waits for, once; the turn takes the mark back.
    pub(crate) fn queue_sync(&self, file: &Arc<FileInner>, state: &mut FileState) {
        if !std::mem::replace(&mut state.sync_queued, true) {
            lock(&self.lists).sync.push_back(Arc::downgrade(file));
            self.flusher.raise();
        }
    }

    /// Whether a sync waits for a turn: it goes ahead of everything else.
    pub(crate) fn sync_waiting(&self) -> bool {
        !lock(&self.lists).sync.is_empty()
    }

    pub(crate) fn queue_sync_later(&self, file: &Arc<FileInner>, state: &mut FileState, at: Nanos) {
        if !std::mem::replace(&mut state.sync_queued, true) {
            lock(&self.lists).later.push((at, Later::Sync(Arc::downgrade(file))));
        }
    }

    /// The next file for a turn; those that are gone are passed over, and so are those that a sync wrote
    /// since they were listed: what is dirty now is younger, and they are listed by that.
    pub(crate) fn next_file(&self, reason: FlushReason, expired_before: Nanos) -> Option<Arc<FileInner>> {
        loop {
            let next = lock(&self.lists).next(reason, expired_before)?;
            let Some(file) = next.upgrade() else { continue };
            if reason == FlushReason::Expired {
                let mut state = lock(&file.state);
                if state.dirtied_at > expired_before {
                    state.queued = false;
                    // That instant will do for now: a pause that has ended since is found at the next look.
                    requeue(&file, &mut state, expired_before);
                    continue;
                }
            }
            return Some(file);
        }
    }

    /// What the next choice is made from. Files whose pause is over go back to their lists first.
    pub(crate) fn view(&self, cache: &Cache, now: Nanos, background: Background) -> View {
        let draining = self.draining.load(Ordering::Relaxed) > 0;
        let memory_short = self.memory_short.load(Ordering::Relaxed) || self.budget.waiting() > 0;
        let dirty_pages = self.reclaimable_pages();
        let (background_pages, over_law) = match background {
            Background::Parts => (self.background_pages_in_force(cache), false),
            Background::Law(over) => (u64::MAX, over),
            Background::Elsewhere => (u64::MAX, false),
        };
        let expire_ns = self.knob(&cache.settings, Knob::ExpireCentisecs) * 10 * Nanos::MILLISECOND;
        let mut lists = lock(&self.lists);
        let due = |(at, _): &(Nanos, Later)| *at <= now;
        for (_, later) in lists.later.extract_if(.., |entry| due(entry)).collect::<Vec<_>>() {
            match later {
                Later::Retry(file) => lists.retry.push_back(file),
                Later::Sync(file) => lists.sync.push_back(file),
            }
        }
        // Older ones change nothing once there is reason enough to write.
        let any_will_do = draining || memory_short || over_law || dirty_pages > background_pages;
        let oldest = lists.oldest(|dirtied_at| any_will_do || dirtied_at.after(expire_ns) <= now);
        View {
            now,
            sync_waiting: !lists.sync.is_empty(),
            retry_due: !lists.retry.is_empty(),
            files_ready: oldest.is_some(),
            draining,
            memory_short,
            dirty_pages,
            background_pages,
            over_law,
            expires_here: background != Background::Elsewhere,
            oldest,
            expire_ns,
            next_retry: lists.later.iter().map(|(at, _)| *at).min(),
            interval_ns: cache.settings.get(Knob::WritebackCentisecs) * 10 * Nanos::MILLISECOND,
        }
    }

    /// Wakes the flusher because somebody is short of frames.
    pub(crate) fn press(&self) {
        if !self.memory_short.swap(true, Ordering::Relaxed) {
            self.flusher.raise();
        }
    }

    pub(crate) fn request_begins(&self, now: Nanos) {
        let mut usage = lock(&self.usage);
        if usage.in_flight == 0 {
            usage.busy_since = now;
        }
        usage.in_flight += 1;
    }

    pub(crate) fn request_ends(&self, now: Nanos) {
        let mut usage = lock(&self.usage);
        usage.in_flight -= 1;
        if usage.in_flight == 0 {
            usage.busy_ns += now.since(usage.busy_since);
        }
    }

    /// Notes how a write or flush ended. Once several in a row have failed, those who wait for the
    /// device's room learn it instead of waiting for what may never come.
    /// `known`: the file's write before failed too, which says nothing new of the device.
    pub(crate) fn note_write(&self, result: Result<u64, DeviceError>, known: bool) {
        let mut usage = lock(&self.usage);
        match result {
            Ok(bytes) => {
                usage.written_bytes += bytes;
                usage.failures_in_row = 0;
            }
            Err(_) if known => {}
            Err(error) => {
                usage.failures_in_row = usage.failures_in_row.saturating_add(1);
                usage.last_error = Some(error);
                drop(usage);
                // Those who wait look whether it is their file, or the device.
                self.budget.fail(error);
            }
        }
    }

    /// The error to tell those who would have to wait for room, if the device keeps failing.
    pub(crate) fn keeps_failing(&self) -> Option<DeviceError> {
        let usage = lock(&self.usage);
        usage.last_error.filter(|_| usage.failures_in_row >= FAILURES_BEFORE_TELLING)
    }

    pub(crate) fn status(&self, cache: &Cache, now: Nanos) -> DeviceStatus {
        let dirty_bytes = self.budget.used() * PAGE_BYTES;
        let dirty_limit_bytes = crate::dirty::limit_pages(cache) * PAGE_BYTES;
        let files_dirty = self.unclean_count() as u32;
        let background_pages = self.background_pages_in_force(cache);
        let usage = lock(&self.usage);
        let busy_now = if usage.in_flight > 0 { now.since(usage.busy_since) } else { 0 };
        let writeback = self.writeback_pages.load(Ordering::Relaxed);
        DeviceStatus {
            id: self.id,
            name: self.name.clone(),
            dirty_bytes,
            writeback_bytes: writeback * PAGE_BYTES,
            dirty_limit_bytes,
            written_bytes: usage.written_bytes,
            busy_ns: usage.busy_ns + busy_now,
            in_flight: usage.in_flight,
            writers_waiting: self.pauses.waiting() as u32,
            files_dirty,
            files_failed: self.files_failed.load(Ordering::Relaxed) as u32,
            last_error: usage.last_error,
            background_threshold_bytes: background_pages.saturating_mul(PAGE_BYTES),
            write_bandwidth_bytes_per_s: usage.bandwidth.bytes_per_second(),
            pauses: self.pauses.status(),
        }
    }
}

/// Who says when background writeback of a device is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Background {
    /// The device's part of the limit.
    Parts,
    /// A law, and it says this.
    Law(bool),
    /// A driver of its own, which writes what is old, too.
    Elsewhere,
}

/// How a device is doing.
#[derive(Clone, Debug)]
pub struct DeviceStatus {
    /// Its number.
    pub id: DeviceId,
    /// Its name.
    pub name: String,
    /// Bytes not yet written, those being written included.
    pub dirty_bytes: u64,
    /// Bytes being written.
    pub writeback_bytes: u64,
    /// Dirty bytes above which writers to this device wait.
    pub dirty_limit_bytes: u64,
    /// Bytes written since the engine started.
    pub written_bytes: u64,
    /// Time during which at least one request was in flight.
    pub busy_ns: u64,
    /// Requests in flight.
    pub in_flight: u32,
    /// Writers waiting for the dirty limit.
    pub writers_waiting: u32,
    /// Files with something not yet written.
    pub files_dirty: u32,
    /// Files whose last write or flush failed and has not succeeded since.
    pub files_failed: u32,
    /// The last error of a write or flush.
    pub last_error: Option<DeviceError>,
    /// Dirty bytes above which its flusher starts to write: the lowest of the thresholds in force, so
    /// that it moves with the bandwidth while one is a time. (The kernel's BackgroundThresh.)
    pub background_threshold_bytes: u64,
    /// Bytes a second that it writes, as the law in force estimates it; where that makes no estimate, as
    /// measured while it has something to write. Unknown at first. (The kernel's BdiWriteBandwidth.)
    pub write_bandwidth_bytes_per_s: Option<u64>,
    /// Writers' pauses by cause, as far as there were any.
    pub pauses: Vec<PauseStatus>,
}

#[cfg(test)]
mod tests;
