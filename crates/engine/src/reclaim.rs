//! Reclaim: clean pages give up their frames. Frames are taken: free ones, else those of clean pages, else the next
//! that comes back.
//!
//! Owns: the order of attempts and the wait. Does not own: which page goes (`eviction`), readahead's refusal; dirty
//! pages, which are never evicted, only written (`writeback`).
//! Invariants: no file's lock is held while another's is taken. A demand that finds no frame presses
//! the flushers and waits; it ends when a frame comes back, whoever brings it.

use std::sync::Arc;

use frames::{Effort, FrameId, Mobility, Order};

use crate::base::Base;
use crate::cache::Cache;
use crate::cache::nodes::Tag;
use crate::counters::Counter;
use crate::devices::file::FileInner;
use crate::page::DIRTY;
use crate::platform::{Nanos, Platform};
use crate::rare::Rare;
use crate::wait::{either, lock};

/// Pages taken from the lists at a time.
const BATCH: usize = 32;
/// Pages looked at for one batch.
const SCAN_MAX: u64 = 256;
/// How often one who waits for memory looks again by himself: a passing pin wakes nobody.
const LOOK_AGAIN_NS: u64 = Nanos::MILLISECOND;

/// The mechanism.
pub(crate) struct Reclaim<P: Platform> {
    base: Base<P>,
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

/// Frames taken and not yet used; what is left goes back on drop. A single one costs no memory of its own. Of several
/// the lowest is used first: what follows each other in memory then does so in the file, too, and a device reads or
/// writes it as one piece. The cache is borrowed: its count of references is one word for all writers.
pub(crate) struct Spare<'a> {
    cache: &'a Cache,
    only: Option<FrameId>,
    /// The highest first.
    more: Vec<FrameId>,
}

impl<'a> Spare<'a> {
    pub(crate) fn none(cache: &'a Cache) -> Self {
        Self { cache, only: None, more: Vec::new() }
    }

    /// Takes over another's.
    pub(crate) fn join(&mut self, mut other: Self) {
        if self.len() == 0 {
            std::mem::swap(self, &mut other);
        }
        self.more.extend(self.only.take());
        self.more.extend(other.only.take().into_iter().chain(other.more.drain(..)));
        self.more.sort_unstable_by(|one, other| other.cmp(one));
    }

    pub(crate) fn take(&mut self) -> Option<FrameId> {
        self.more.pop().or_else(|| self.only.take())
    }

    /// The next, if there is one, will be filled by a copy soon: its memory is asked for while something else is done.
    pub(crate) fn expect_copy(&self) {
        if let Some(frame) = self.more.last().copied().or(self.only) {
            self.cache.expect_copy(frame);
        }
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.only.is_some()) + self.more.len()
    }

    /// Adds what can be had at once, up to `count` in all.
    pub(crate) fn grow(&mut self, count: usize, effort: Effort) {
        let lacking = count.saturating_sub(self.len()) as u32;
        let path = if matches!(effort, Effort::Normal) { Rare::NoFrame } else { Rare::NoFrameAhead };
        if lacking == 0 || self.cache.rare.fails_allocation(path) {
            return;
        }
        let Self { cache, only, more } = self;
        if count > 1 {
            more.reserve(count - more.len());
            more.extend(only.take());
        }
        cache.frames.allocate_bulk(lacking, Mobility::Movable, effort, |frame| {
            if count > 1 { more.push(frame) } else { *only = Some(frame) }
        });
        more.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        if self.len() == 0 {
            return;
        }
        for frame in self.only.take().into_iter().chain(self.more.drain(..)) {
            self.cache.frames.free(frame, Order::SINGLE);
        }
        self.cache.memory_queue.wake_all();
    }
}

impl<P: Platform> Reclaim<P> {
    pub(crate) fn new(base: Base<P>) -> Arc<Self> {
        Arc::new(Self { base })
    }

    /// Takes up to `count` frames, at least one: waits for that one if it must.
    pub(crate) async fn take_frames(&self, count: usize) -> Spare<'_> {
        let cache = &self.base.cache;
        if cache.rare.strikes(Rare::EvictNow) {
            self.evict(BATCH);
        }
        let mut spare = Spare::none(cache);
        spare.grow(count, Effort::Normal);
        if spare.len() >= count {
            return spare;
        }
        self.evict_until(&mut spare, count).await;
        if spare.len() == 0 {
            self.base.local().count(Counter::AllocStall, 1);
        }
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
                self.evict_until(&mut spare, count).await;
            }
        }
        spare
    }

    /// Evicts until `spare` has `count` frames, or at least one if that takes long.
    async fn evict_until(&self, spare: &mut Spare<'_>, count: usize) {
        let cache = &self.base.cache;
        // Each page at most twice: one that was used is passed over once.
        let mut left = 2 * cache.total_pages();
        while spare.len() < count {
            let before = spare.len();
            let evicted = self.evict((count - before).max(BATCH));
            spare.grow(count, Effort::Normal);
            left = left.saturating_sub(evicted.scanned);
            let enough = spare.len() > 0 && evicted.pages == 0;
            if enough || evicted.scanned == 0 || left == 0 {
                return;
            }
            if evicted.pages == 0 {
                self.base.pass().await;
            }
        }
    }
}
