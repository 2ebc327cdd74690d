//! Reclaim: clean pages give up their frames. Frames are taken: free ones, which are freed ahead of need
//! (`background`), else those of clean pages, else the next that comes back.
//!
//! Owns: the order of attempts, the wait, how long that took.
//! Does not own: which page goes (`eviction`), readahead's refusal; dirty pages, which are never evicted, only written
//! (`writeback`).
//! Invariants: no file's lock is held while another's is taken. A demand that finds no frame presses
//! the flushers and waits; it ends when a frame comes back, whoever brings it.

mod background;
mod spare;

use std::sync::Arc;

use frames::Effort;

use crate::base::Base;
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::devices::file::FileInner;
use crate::durations::{Durations, WaitTimes};
use crate::page::DIRTY;
use crate::platform::{Nanos, Platform};
use crate::rare::Rare;
use crate::wait::{either, lock};
use background::Background;
pub(crate) use spare::Spare;

/// Pages taken from the lists at a time.
const BATCH: usize = 32;
/// Pages that a reader or a writer recycles at a time.
const RECYCLED: usize = 4;
/// How long it does so, if it has one frame at least.
const RECYCLE_NS: u64 = 20_000;
/// Pages looked at for one batch.
const SCAN_MAX: u64 = 256;
/// How often one who waits for memory looks again by himself: a passing pin wakes nobody.
const LOOK_AGAIN_NS: u64 = Nanos::MILLISECOND;

/// The mechanism.
pub(crate) struct Reclaim<P: Platform> {
    base: Base<P>,
    background: Background,
    waits: Durations,
}

impl<P: Platform> Reclaim<P> {
    /// Evicts up to `want` clean pages, of those that the eviction policy chooses.
    pub(crate) fn evict(&self, want: usize) -> Evicted {
        let (cache, local) = (&self.base.cache, self.base.local());
        let scan = cache.eviction.victims(&cache.pages, want, SCAN_MAX);
        local.count(Counter::PagesScanned, scan.scanned);
        let (mut evicted, mut freed) = (0, false);
        for victim in scan.victims {
            let Some(file) = self.base.devices.files.get(victim.identity.file) else {
                continue;
            };
            let mut state = lock(&file.state);
            let page = victim.identity.index;
            if file.pages.index.frame(&cache.nodes, page) != Some(victim.frame) {
                continue;
            }
            if !may_go(&file, page) {
                continue;
            }
            // Linked again by a write that ended since the scan. Unlinked while it is still ours: once
            // it is detached a late reader may free it, and somebody else link it as another page.
            cache.eviction.removed(&cache.pages, &[victim.frame]);
            if cache.pages.detach_idle(victim.frame) {
                if file.pages.index.has_tag(&cache.nodes, page, Tag::Unflushed) {
                    state.unflushed_evicted = true;
                }
                file.pages.index.remove(&cache.nodes, page);
                if victim.remember {
                    cache.eviction.remember(file.pages.key(page));
                }
                freed |= cache.release_silently(victim.frame);
                evicted += 1;
            } else if !cache.pages.word(victim.frame).any(DIRTY) {
                cache.note_clean(victim.frame);
            }
        }
        if freed {
            cache.memory_queue.wake_all();
        }
        local.count(Counter::PagesEvicted, evicted as u64);
        local.count(Counter::ReadaheadWaste, cache.pages.unread.take_wasted());
        Evicted { pages: evicted, scanned: scan.scanned }
    }
}

/// Whether the page could be read back: not yet, where the device shows what was written after a flush only.
pub(crate) fn may_go(file: &FileInner, page: u64) -> bool {
    file.device.limits().readable_before_flush || !file.pages.index.has_tag(&file.cache.nodes, page, Tag::Unflushed)
}

/// What a search for pages to evict came to.
pub(crate) struct Evicted {
    pages: usize,
    scanned: u64,
}

impl<P: Platform> Reclaim<P> {
    pub(crate) fn new(base: Base<P>) -> Arc<Self> {
        let background = Background::new(base.cache.frames.total());
        Arc::new(Self { base, background, waits: Durations::default() })
    }

    /// Takes up to `count` frames, at least one: waits for that one if it must.
    pub(crate) async fn take_frames(self: &Arc<Self>, count: usize) -> Spare<'_> {
        let cache = &self.base.cache;
        if cache.rare.strikes(Rare::EvictNow) {
            self.evict(BATCH);
        }
        let mut spare = Spare::none(cache);
        spare.grow(count, Effort::Normal);
        self.look_ahead();
        if spare.len() < count {
            let began = self.base.now();
            self.find_more(&mut spare, count).await;
            self.waits.note(self.base.now().since(began));
        }
        spare
    }

    /// How long those took who did not find the frames that they wanted.
    pub(crate) fn wait_times(&self) -> WaitTimes {
        self.waits.times()
    }

    /// Recycles, and if there is still none waits for one.
    async fn find_more(&self, spare: &mut Spare<'_>, count: usize) {
        self.base.local().count(Counter::AllocStall, 1);
        self.recycle(spare, count).await;
        let cache = &self.base.cache;
        self.base.local().count(Counter::DemandAllocFail, u64::from(spare.len() == 0));
        while spare.len() == 0 {
            for device in self.base.devices.all() {
                device.press();
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

    /// Evicts until `spare` has `count` frames, or at least one if that takes long. Where frames are freed in the
    /// background too, a few at a time and for some microseconds only: what is lacking then is there soon.
    async fn recycle(&self, spare: &mut Spare<'_>, count: usize) {
        let began = self.base.now();
        // Each page at most twice: one that was used is passed over once.
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
