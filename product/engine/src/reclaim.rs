//! Background and direct reclaim: clean pages give up their frames. A task takes free frames, which are freed ahead of
//! need, else those of clean pages, else the next frame that comes back.
//!
//! A reader with a request in flight makes up for the frames that it took, if few are free. A task that takes frames
//! may still find fewer free than the low mark. It then starts a task that goes ahead of others, frees pages in batches
//! up to the high mark, and ends. So consumption paces both, and without it they cost nothing. A small cache has no
//! background reclaim: the marks are a large part of it, and a batch that a reader frees itself serves it for long.
//!
//! Owns: the order of attempts, the wait and its duration; how much a task frees itself; when background reclaim starts
//! and ends; frames taken and not yet used.
//! Does not own: which page goes (`eviction`), readahead without frames; dirty pages, which are never evicted, only
//! written (`writeback`).
//! Invariants: no file's lock is held while another's is taken. A demand that finds no frame presses the flushers and
//! waits; it ends when any task gives a frame back. Unused frames go back on drop. One task of background reclaim runs
//! at a time; if a thousand pages in a row cannot go, it gives up, and none starts before the instant that it set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_device::counters::Counter;
use afflux_device::platform::{Nanos, Platform};
use afflux_frames::{Effort, FrameId};
use afflux_pages::cache::PageCache;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::eviction::{PageKey, Victim, is_claimed};
use afflux_pages::page::DIRTY;
use afflux_pages::rare::Rare;
use afflux_pages::wait::{either, lock};
use smallvec::SmallVec;

use crate::base::Base;
use crate::devices::file::{FileInner, FileState};
use crate::durations::{Durations, WaitTimes};

/// Pages taken from the lists at a time.
pub(crate) const BATCH: usize = 32;
/// Pages that a reader or a writer recycles at a time.
const RECYCLED: usize = 4;
/// How long it recycles, once it has one frame.
const RECYCLE_NS: u64 = 20_000;
/// Pages looked at for one batch.
const SCAN_MAX: u64 = 256;
/// Victims of a file that go in one hold of its lock.
const HELD: usize = 8;
/// How often a waiter for memory checks again by itself: a passing pin wakes nobody.
const LOOK_AGAIN_NS: u64 = Nanos::MILLISECOND;

pub(crate) struct Reclaim<P: Platform> {
    pub(crate) base: Base<P>,
    background: RunState,
    waits: Durations,
}

impl<P: Platform> Reclaim<P> {
    /// Evicts up to `want` clean pages, as the eviction policy chooses. Victims of one file go together: the file is
    /// looked up once for them, and locked once for a few.
    pub(crate) fn evict(&self, want: usize) -> Evicted {
        let (cache, local) = (&self.base.cache, self.base.local());
        let mut scan = cache.eviction.victims(&cache.pages, want, SCAN_MAX);
        local.count(Counter::PagesScanned, scan.scanned);
        if scan.waiting_to_be_written.len() > scan.victims.len() {
            self.request_writes_of(&mut scan.waiting_to_be_written);
        }
        // One fence for all of them, before any file is locked.
        cache.recall(scan.victims.iter().map(|victim| victim.frame));
        scan.victims.sort_by_key(|victim| victim.identity.file);
        let mut gone = Vec::with_capacity(scan.victims.len());
        for victims in scan.victims.chunk_by(|one, other| one.identity.file == other.identity.file) {
            // An unknown slot means that the file is gone, and its pages with it.
            if let Some(file) = self.base.devices.files.get(victims[0].identity.file) {
                for victims in victims.chunks(HELD) {
                    let mut state = lock(&file.state);
                    let taken = victims.iter().filter(|victim| try_take_out(&file, &mut state, victim));
                    gone.extend(taken.map(|victim| (victim, file.pages.key(victim.identity.index))));
                }
            }
        }
        let keys: Vec<PageKey> = gone.iter().filter(|(victim, _)| victim.remember).map(|(_, key)| *key).collect();
        cache.eviction.remember(&keys);
        let freed = gone.iter().filter(|(victim, _)| cache.try_release_silently(victim.frame)).count();
        if freed > 0 {
            cache.memory_queue.wake_all();
        }
        local.count(Counter::PagesEvicted, gone.len() as u64);
        local.count(Counter::ReadaheadWaste, cache.pages.unread.take_wasted());
        Evicted { pages: gone.len(), scanned: scan.scanned }
    }

    /// Evicts until readahead can take so many frames, or until no page goes.
    pub(crate) fn evict_for_ahead(&self, count: u64) {
        let frames = &self.base.cache.frames;
        let is_enough = || u64::from(frames.shared_free_count()) >= u64::from(frames.watermarks().low) + count;
        while !is_enough() && self.evict(SCAN_MAX as usize).pages > 0 {}
    }

    /// If most of the pages that would have gone are dirty, their devices write, ahead of other work. Each page is
    /// counted once, so that no device is pressed again for the same dirty pages.
    #[cold]
    fn request_writes_of(&self, files: &mut Vec<u32>) {
        files.sort_unstable();
        files.dedup();
        for file in files.iter().filter_map(|slot| self.base.devices.files.get(*slot)) {
            file.device.worklist().request_reclaim_writes();
        }
    }
}

/// Takes a victim out of its file, if it is still there and can go.
fn try_take_out(file: &FileInner, state: &mut FileState, victim: &Victim) -> bool {
    let (cache, page) = (&file.cache, victim.identity.index);
    if file.pages.index.frame(&cache.nodes, page) != Some(victim.frame) {
        return false;
    }
    if !may_go(file, state, page) {
        if state.flushes.is_redirtying() {
            // Perhaps written again by now: then only this puts the page back on a list.
            cache.note_clean(victim.frame);
        }
        return false;
    }
    // A write that ended since the scan may have linked it again. Unlinked while it is still ours: once it is detached,
    // a late reader may free the frame, and another task link it as another page.
    if !is_claimed(&cache.pages, victim.frame) {
        cache.eviction.removed(&cache.pages, &[victim.frame]);
    }
    let goes = cache.pages.try_detach_idle(victim.frame);
    if goes {
        state.flushes.note_evicted(file.pages.index.has_tag(&cache.nodes, page, Tag::Unflushed));
        file.pages.index.remove(&cache.nodes, page);
    } else if !cache.pages.word(victim.frame).has_any(DIRTY) {
        cache.note_clean(victim.frame);
    }
    goes
}

/// Whether the page can be read back. Not yet, if the device shows written bytes only after a flush. Pages that a
/// failed flush covered do not go, either, before they are dirty again.
pub(crate) fn may_go(file: &FileInner, state: &FileState, page: u64) -> bool {
    let readable = file.device.limits().readable_before_flush && !state.flushes.is_redirtying();
    readable || !file.pages.index.has_tag(&file.cache.nodes, page, Tag::Unflushed)
}

/// The result of a search for pages to evict.
pub(crate) struct Evicted {
    pub(crate) pages: usize,
    pub(crate) scanned: u64,
}

/// The result of dropping all clean pages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// Count of pages that were dropped.
    pub pages: u64,
    /// Checks of pages until the last of these had gone; each check counts.
    pub looks: u64,
}

/// Fruitless checks in a row, for each page, after which no remaining page can go: a policy spares a page that was used
/// four times at most.
const LOOKS_FOR_NOTHING: u64 = 5;

impl<P: Platform> Reclaim<P> {
    pub(crate) fn new(base: Base<P>) -> Arc<Self> {
        let background = RunState::new(base.cache.frames.total());
        Arc::new(Self { base, background, waits: Durations::default() })
    }

    /// Evicts every clean page that nobody holds.
    pub(crate) fn evict_all(&self) -> Dropped {
        let (mut dropped, mut fruitless) = (Dropped::default(), 0);
        while fruitless <= LOOKS_FOR_NOTHING * self.base.cache.total_pages() {
            let evicted = self.evict(BATCH);
            if evicted.scanned == 0 {
                break;
            }
            fruitless += evicted.scanned;
            if evicted.pages > 0 {
                dropped.pages += evicted.pages as u64;
                dropped.looks += std::mem::take(&mut fruitless);
            }
        }
        self.base.cache.nodes.give_back_unused();
        dropped
    }

    /// Takes up to `count` frames, at least one: waits for that one if necessary.
    pub(crate) async fn take_frames(self: &Arc<Self>, count: usize) -> SpareFrames<'_> {
        let cache = &self.base.cache;
        if cache.rare.is_forced(Rare::EvictNow) {
            self.evict(BATCH);
        }
        let mut spare = SpareFrames::none(cache);
        spare.grow(count, Effort::Normal);
        self.look_ahead();
        if spare.len() < count {
            let began = self.base.now();
            self.find_more(&mut spare, count).await;
            self.waits.note(self.base.now().since(began));
        }
        spare
    }

    /// How long tasks took that did not find the frames they wanted.
    pub(crate) fn wait_times(&self) -> WaitTimes {
        self.waits.times()
    }

    /// Recycles frames, and waits for one if there is still none.
    async fn find_more(&self, spare: &mut SpareFrames<'_>, count: usize) {
        self.base.local().count(Counter::AllocStall, 1);
        self.recycle(spare, count).await;
        let cache = &self.base.cache;
        self.base.local().count(Counter::DemandAllocFail, u64::from(spare.len() == 0));
        while spare.len() == 0 {
            for device in self.base.devices.all() {
                device.worklist().request_reclaim_writes();
            }
            let look_again = self.base.sleep_until(self.base.now().after(LOOK_AGAIN_NS));
            either(
                cache.memory_queue.until(|| {
                    spare.grow(count, Effort::Normal);
                    (spare.len() > 0).then_some(())
                }),
                look_again,
            )
            .await;
            if spare.len() == 0 {
                self.recycle(spare, count).await;
            }
        }
    }

    /// Evicts until `spare` has `count` frames, or at least one if that takes long. If frames are freed in the
    /// background, too, it recycles a few at a time and for some microseconds only: the rest will be there soon.
    async fn recycle(&self, spare: &mut SpareFrames<'_>, count: usize) {
        let began = self.base.now();
        // Each page at most twice: a used page is passed over once.
        let mut left = 2 * self.base.cache.total_pages();
        while spare.len() < count {
            let lacking = count - spare.len();
            let evicted = self.evict(if self.has_background() { RECYCLED } else { lacking.max(BATCH) });
            spare.grow(count, Effort::Normal);
            if self.has_background() {
                // A simulated CPU may be lost here, as a real one may at any time.
                self.base.platform.between_requests().await;
            }
            left = left.saturating_sub(evicted.scanned);
            let late = self.has_background() && self.base.now().since(began) >= RECYCLE_NS;
            let enough = spare.len() > 0 && (late || evicted.pages == 0);
            if enough || evicted.scanned == 0 || left == 0 {
                return;
            }
            if evicted.pages == 0 {
                self.base.pass().await;
            }
        }
    }
}

/// Frames taken and not yet used; unused ones go back on drop. A single frame needs no heap memory. Of several the
/// lowest is used first: neighbours in memory then are neighbours in the file, and a device reads or writes them as one
/// piece. The cache is borrowed: its count of references is one word for all writers.
pub(crate) struct SpareFrames<'a> {
    cache: &'a PageCache,
    /// The highest first.
    frames: SmallVec<[FrameId; 1]>,
}

impl<'a> SpareFrames<'a> {
    pub(crate) fn none(cache: &'a PageCache) -> Self {
        Self { cache, frames: SmallVec::new() }
    }

    /// Takes over another's frames.
    pub(crate) fn join(&mut self, mut other: Self) {
        if self.len() == 0 {
            std::mem::swap(self, &mut other);
        }
        self.frames.append(&mut other.frames);
        self.frames.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(crate) fn take(&mut self) -> Option<FrameId> {
        self.frames.pop()
    }

    /// A frame for nodes of an index. Takes a free frame first, so that the frames taken for pages stay for pages.
    /// Without a free frame one of the taken frames serves.
    pub(crate) fn take_for_index(&mut self) -> Option<FrameId> {
        let free = || self.cache.frames.allocate(Effort::Normal);
        let found = if self.cache.rare.must_fail_allocation(Rare::NoFrame) { None } else { free() };
        found.or_else(|| self.take())
    }

    /// A copy will soon fill the next frame, if there is one: prefetches its memory meanwhile.
    pub(crate) fn expect_copy(&self) {
        if let Some(frame) = self.frames.last() {
            self.cache.expect_copy(*frame);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Adds free frames, up to `count` in all.
    pub(crate) fn grow(&mut self, count: usize, effort: Effort) {
        let lacking = count.saturating_sub(self.len()) as u32;
        let path = if matches!(effort, Effort::Normal) { Rare::NoFrame } else { Rare::NoFrameAhead };
        if lacking == 0 || self.cache.rare.must_fail_allocation(path) {
            return;
        }
        let Self { cache, frames } = self;
        if count == 1 {
            // Mostly the thread has a free frame of its own.
            frames.extend(cache.frames.allocate(effort));
            return;
        }
        frames.reserve(lacking as usize);
        cache.frames.allocate_bulk(lacking, effort, |frame| frames.push(frame));
        frames.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Drop for SpareFrames<'_> {
    fn drop(&mut self) {
        if self.len() == 0 {
            return;
        }
        for frame in self.frames.drain(..) {
            self.cache.frames.free(frame);
        }
        self.cache.memory_queue.wake_all();
    }
}

/// The smallest cache with background reclaim: 4 MiB.
const FRAMES_MIN: u32 = 1024;

struct RunState {
    is_on: bool,
    runs: AtomicBool,
    /// No start before this: the last run gave up.
    not_before_ns: AtomicU64,
}

impl RunState {
    fn new(frames: u32) -> Self {
        Self { is_on: frames >= FRAMES_MIN, runs: AtomicBool::new(false), not_before_ns: AtomicU64::new(0) }
    }

    /// Whether the cache has background reclaim at all.
    fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether a task could be started: none runs.
    fn may_run(&self) -> bool {
        self.is_on && !self.runs.load(Ordering::Relaxed)
    }

    /// Claims the run for the caller, which starts the task. False if another has it.
    fn try_run(&self) -> bool {
        !self.runs.swap(true, Ordering::Relaxed)
    }

    fn end_run(&self) {
        self.runs.store(false, Ordering::Relaxed);
    }

    /// Whether a scan of many pages was fruitless not long ago. Asks for the time only then.
    fn is_given_up(&self, now: impl FnOnce() -> Nanos) -> bool {
        let until = self.not_before_ns.load(Ordering::Relaxed);
        until > 0 && now().0 < until
    }

    fn give_up_until(&self, until: Nanos) {
        self.not_before_ns.store(until.0, Ordering::Relaxed);
    }
}

/// Fruitless checks of pages in a row after which it ends.
const FRUITLESS_MAX: u64 = 1024;
/// Batches that a reader frees for one request.
const MADE_UP_MAX: u64 = 8;

struct Run<P: Platform>(Arc<Reclaim<P>>);

impl<P: Platform> Reclaim<P> {
    /// Whether frames are freed in the background.
    pub(crate) fn has_background(&self) -> bool {
        self.background.is_on()
    }

    /// Starts background reclaim if too few frames are free. Costs two loads if there are enough.
    pub(crate) fn look_ahead(self: &Arc<Self>) {
        let frames = &self.base.cache.frames;
        let is_enough = || frames.shared_free_count() >= frames.watermarks().low;
        if !self.background.may_run() || is_enough() || self.is_given_up() {
            return;
        }
        if self.background.try_run() {
            let run = Run(Arc::clone(self));
            let task = async move { run.fill_up().await };
            self.base.platform.spawn_ahead("reclaim", task);
        }
    }

    /// Frees as many frames as a reader with a request in flight has just taken, if fewer are free than halfway between
    /// the low and the high mark. The reader would wait now anyway, and its CPU needs the frames next: a task elsewhere
    /// would cost both more than the work.
    pub(crate) fn make_up_for(&self, taken: u64) {
        let frames = &self.base.cache.frames;
        let marks = frames.watermarks();
        let is_enough = || frames.shared_free_count() >= u32::midpoint(marks.low, marks.high);
        if !self.background.is_on() || is_enough() || self.is_given_up() {
            return;
        }
        for _ in 0..taken.div_ceil(BATCH as u64).min(MADE_UP_MAX) {
            if self.evict(BATCH).pages == 0 {
                return self.give_up();
            }
            if is_enough() {
                return;
            }
        }
    }

    fn is_given_up(&self) -> bool {
        self.background.is_given_up(|| self.base.now())
    }

    fn give_up(&self) {
        self.background.give_up_until(self.base.now().after(LOOK_AGAIN_NS));
    }
}

impl<P: Platform> Run<P> {
    /// Frees frames up to the high mark.
    async fn fill_up(&self) {
        let Self(reclaim) = self;
        let frames = &reclaim.base.cache.frames;
        let high = frames.watermarks().high;
        let mut fruitless = 0;
        while frames.shared_free_count() < high {
            let evicted = reclaim.evict(BATCH);
            fruitless = if evicted.pages > 0 { 0 } else { fruitless + evicted.scanned };
            if evicted.scanned == 0 || fruitless >= FRUITLESS_MAX {
                return reclaim.give_up();
            }
            reclaim.base.pass().await;
        }
    }
}

impl<P: Platform> Drop for Run<P> {
    /// Also runs if a world that stops drops its tasks.
    fn drop(&mut self) {
        self.0.background.end_run();
    }
}
