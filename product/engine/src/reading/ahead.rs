//! Reading pages ahead of requests, and dropping pages that no reader needs.
//!
//! Owns: the policy's input about the file, the device and the cache; how its answer becomes requests; advice.
//! Does not own: how far ahead (`readahead`), the reads (`in_flight`).
//! Invariants: nothing here waits. If no frame is free, a few clean pages of others go first. Pages that still find no
//! frame are not read, and the policy learns that. Unread pages are a quarter of the cache at most; a quarter of a
//! device's requests is reserved for readers that wait. A stream takes only a part of a device's quota while others
//! read, too: a reader that comes when all is taken would never get more than its misses.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_device::counters::Counter;
use afflux_device::platform::Platform;
use afflux_device::settings::Knob;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::cache::{FilePages, PageCache};
use afflux_pages::page::{DIRTY, PRIOR, READING, WRITEBACK};
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Reading;
use super::miss::Miss;
use crate::devices::file::{FileInner, FileState};
use crate::readahead::prices::WindowSizes;
use crate::readahead::{Advice, Ahead, AheadTerms, Cached, ReadaheadEnd};
use crate::reclaim::may_go;

/// The part of the cache that may be read ahead of its readers.
pub(crate) const UNREAD_PART: u64 = 4;
/// The part of a device's requests that is reserved for readers that wait.
const DEMAND_PART: u64 = 4;
/// Pages dropped in one hold of the file's lock.
const LET_GO_PAGES: u64 = 64;

/// Pages of a file as readahead sees them, with the file's lock held.
struct CachedPages<'a>(&'a PageCache, &'a FilePages);

impl CachedPages<'_> {
    fn has(&self, page: u64) -> bool {
        self.0.frame_at(self.1, page).is_some()
    }
}

impl Cached for CachedPages<'_> {
    fn before(&self, page: u64, most: u64) -> u64 {
        (1..=most.min(page)).take_while(|back| self.has(page - back)).count() as u64
    }

    fn first_absent(&self, from: u64, most: u64) -> Option<u64> {
        (from..from.saturating_add(most)).find(|page| !self.has(*page))
    }
}

impl<P: Platform> Reading<P> {
    /// Asks the policy which pages to read in addition, with the file's lock held.
    pub(super) fn ask_policy(
        &self,
        file: &FileInner,
        state: &mut FileState,
        ask: impl FnOnce(&mut FileState, &AheadTerms<'_>, &dyn Cached) -> Ahead,
    ) -> Ahead {
        let cache = &self.base.cache;
        let budget = cache.total_pages() / UNREAD_PART;
        let left = || budget.saturating_sub(cache.pages.unread.pages());
        let pages_ahead = || cache.pages.unread.of_file(file.pages.slot);
        let knob = |knob| file.device.knob(self.base.settings(), knob);
        // At least one request of the device: no law knows how late a busy machine notices an answer.
        let window_sizes = file.device.in_flight.read_windows();
        let terms = AheadTerms {
            file_pages: file.size().div_ceil(PAGE_BYTES),
            most: (knob(Knob::ReadaheadBytes) / PAGE_BYTES).min(budget),
            request_pages: file.device.request_pages(),
            window_sizes: WindowSizes { most: window_sizes.most.max(file.device.request_pages()), ..window_sizes },
            remaining: &left,
            openings: &file.device.openings,
            pages_ahead: &pages_ahead,
        };
        let ahead = ask(state, &terms, &CachedPages(cache, &file.pages));
        file.pages.trigger_readahead_past(state.readahead.trigger());
        ahead
    }

    /// A read of these bytes used up the pages read ahead.
    #[cold]
    pub(crate) fn read_ahead(self: &Arc<Self>, file: &Arc<FileInner>, bytes: Range<u64>) {
        let ahead = {
            let mut state = lock(&file.state);
            self.ask_policy(file, &mut state, |state, terms, cached| state.readahead.used(&bytes, terms, cached))
        };
        if ahead.count > 0 {
            self.fill_ranges(file, &ahead, 0);
        }
        if file.no_reuse.load(Ordering::Relaxed) {
            let (page, behind) = (bytes.start / PAGE_BYTES, file.device.in_flight.read_windows().most);
            self.drop_used(file, page.saturating_sub(behind)..page, 1);
        }
    }

    /// Reads the absent pages of the ranges, from a page on, and reports to the policy how far that came.
    pub(super) fn fill_ranges(self: &Arc<Self>, file: &Arc<FileInner>, ahead: &Ahead, from: u64) {
        let mut came = ReadaheadEnd::Through;
        for pages in ahead.ranges() {
            came = self.fill_ahead(file, pages.start.max(from)..pages.end);
            if came != ReadaheadEnd::Through {
                break;
            }
        }
        self.note_readahead_end(file, came);
    }

    pub(super) fn note_readahead_end(&self, file: &FileInner, came: ReadaheadEnd) {
        let mut state = lock(&file.state);
        state.readahead.issued(came);
        file.pages.trigger_readahead_past(state.readahead.trigger());
    }

    /// Reads absent pages of a range; returns how far that came.
    fn fill_ahead(self: &Arc<Self>, file: &Arc<FileInner>, pages: Range<u64>) -> ReadaheadEnd {
        let request_pages = file.device.request_pages();
        let last = pages.end.min(file.size().div_ceil(PAGE_BYTES));
        let (mut from, mut evicted) = (pages.start, false);
        while from < last {
            let end = (from + request_pages).min(last);
            if file.device.limits().is_store() {
                // Its requests are dear, so none is smaller for want of frames.
                self.reclaim.evict_for_ahead(end - from);
            }
            let mut miss = Miss::new(file, from..from);
            let begun = {
                let state = &mut *lock(&file.state);
                let absent = self.absent_run(file, from..end);
                if absent.is_empty() {
                    from = end;
                    continue;
                }
                (miss.pages, miss.absent) = (absent.start..absent.start, absent.end - absent.start);
                self.take_for_ahead(&mut miss, state).map(|()| {
                    let filled = absent.start + miss.frames();
                    (self.begin(state, &mut miss), filled)
                })
            };
            self.reclaim.look_ahead();
            match begun {
                Ok((read, filled)) => {
                    // The index takes some of the frames, so a request may end early: the next one begins there.
                    from = read.as_ref().map_or(filled, |read| read.pages.end);
                    if let Some(read) = read {
                        read.submit(&file.device, None);
                    }
                }
                // Not with the lock held: pages of other files go. Background reclaim may run on this very thread, and
                // the reader would not leave it while readahead serves its reads.
                Err(ReadaheadEnd::NoFrame(_)) if !evicted => {
                    evicted = true;
                    let want = miss.absent as usize;
                    drop(miss);
                    self.reclaim.evict(want);
                    continue;
                }
                Err(came) => {
                    if matches!(came, ReadaheadEnd::NoFrame(_)) {
                        self.base.local().count(Counter::AllocFail, 1);
                    }
                    return came;
                }
            }
            evicted = false;
        }
        ReadaheadEnd::Through
    }

    /// Takes the resources of a request for the absent pages, or for fewer of them; an error says which one ran out.
    fn take_for_ahead(&self, miss: &mut Miss<'_>, state: &FileState) -> Result<(), ReadaheadEnd> {
        let (device, from) = (&miss.file.device, miss.pages.start);
        if self.base.cache.rare.is_forced(Rare::SlotTaken) {
            return Err(ReadaheadEnd::NoRequest(from));
        }
        miss.grow(state);
        if miss.quota > 0 && miss.frames() == 0 {
            return Err(ReadaheadEnd::NoFrame(from));
        }
        let left = u64::from(device.limits().depth) / DEMAND_PART;
        miss.has_slot = miss.quota > 0 && device.slots().try_take_leaving(1, left);
        if miss.has_slot { Ok(()) } else { Err(ReadaheadEnd::NoRequest(from)) }
    }

    /// The first run of absent pages in the range, with the file's lock held. At a store, short gaps of cached pages
    /// belong to it.
    pub(super) fn absent_run(&self, file: &FileInner, pages: Range<u64>) -> Range<u64> {
        let cached = CachedPages(&self.base.cache, &file.pages);
        let start = pages.clone().find(|page| !cached.has(*page)).unwrap_or(pages.end);
        let gap_most = file.device.read_through_pages();
        let mut end = start;
        for page in start..pages.end {
            if !cached.has(page) {
                end = page + 1;
            } else if page - end >= gap_most {
                break;
            }
        }
        start..end
    }

    /// A caller's advice on how a range, or the file, will be read.
    pub(crate) fn advise(self: &Arc<Self>, file: &Arc<FileInner>, bytes: Range<u64>, advice: Advice) {
        let end = bytes.end.min(file.size());
        match advice {
            Advice::Normal | Advice::Sequential | Advice::Random => {
                let mut state = lock(&file.state);
                state.readahead.advise(advice);
                file.pages.trigger_readahead_past(state.readahead.trigger());
                file.no_reuse.store(false, Ordering::Relaxed);
            }
            Advice::NoReuse => file.no_reuse.store(true, Ordering::Relaxed),
            Advice::WillNeed => {
                let unread = self.base.cache.pages.unread.pages();
                let left = (self.base.cache.total_pages() / UNREAD_PART).saturating_sub(unread);
                let start = bytes.start / PAGE_BYTES;
                self.fill_ahead(file, start..end.div_ceil(PAGE_BYTES).min(start + left));
            }
            Advice::DontNeed => {
                let whole = if end == file.size() { end.div_ceil(PAGE_BYTES) } else { end / PAGE_BYTES };
                self.drop_used(file, bytes.start.div_ceil(PAGE_BYTES)..whole, u8::MAX);
            }
        }
    }

    /// Drops clean pages that nobody holds and that were used at most `uses_max` times.
    fn drop_used(&self, file: &FileInner, mut pages: Range<u64>, uses_max: u8) {
        while !pages.is_empty() {
            let until = pages.end.min(pages.start.saturating_add(LET_GO_PAGES));
            self.drop_some_used(file, &mut lock(&file.state), pages.start..until, uses_max);
            let state = lock(&file.state);
            let next = file.pages.index.next_present(&self.base.cache.nodes, until);
            pages.start = next.unwrap_or(pages.end);
            drop(state);
        }
        self.base.cache.memory_queue.wake_all();
        self.base.local().count(Counter::ReadaheadWaste, self.base.cache.pages.unread.take_wasted());
    }

    fn drop_some_used(&self, file: &FileInner, state: &mut FileState, pages: Range<u64>, uses_max: u8) {
        let cache = &self.base.cache;
        cache.recall_present(&file.pages, pages.clone(), LET_GO_PAGES);
        for page in pages {
            let Some(frame) = cache.frame_at(&file.pages, page) else { continue };
            let busy = cache.pages.word(frame).has_any(DIRTY | WRITEBACK | READING | PRIOR);
            if busy || cache.pages.uses(frame) > uses_max || !may_go(file, state, page) {
                continue;
            }
            // Unlinked while it is still ours, as in an eviction.
            cache.eviction.removed(&cache.pages, &[frame]);
            if cache.pages.try_detach_idle(frame) {
                state.flushes.note_evicted(file.pages.index.has_tag(&cache.nodes, page, Tag::Unflushed));
                file.pages.index.remove(&cache.nodes, page);
                cache.try_release_silently(frame);
            } else {
                cache.note_clean(frame);
            }
        }
    }
}
