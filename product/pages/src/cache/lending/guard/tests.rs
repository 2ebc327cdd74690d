use std::sync::{Arc, Weak};

use afflux_frames::{Effort, Frames};

use super::*;
use crate::cache::PinnedPages;
use crate::cache::lending::{DEBT_FREE, DEBT_MAX, DEBT_PASSES};
use crate::cache::pins::GuardSlots;
use crate::eviction::{Admitted, EvictionKind};
use crate::hazards::{Hazards, SLOTS};
use crate::page::{PRESENT, UPTODATE};

/// A cache of 256 frames with one page of a file, and this thread's slots.
struct LendingFixture {
    cache: Arc<PageCache>,
    places: Arc<GuardSlots>,
    file: FilePages,
    frame: FrameId,
    hazards: Arc<Hazards>,
}

impl LendingFixture {
    fn new(fence: Option<fn()>) -> Self {
        let frames = Frames::new(1 << 20).expect("a mebibyte");
        let cache = Arc::new(PageCache::new(frames, EvictionKind::default(), fence));
        let file = FilePages::new(cache.number_file(), 0, 4096);
        let frame = cache.frames.allocate(Effort::Normal).expect("a free frame");
        cache.pages.occupy(frame, file.identity(0), PRESENT | UPTODATE);
        let reserved = file.index.reserve_nodes(&cache.nodes, 0, || None).expect("a page alone needs no node");
        file.index.insert(&cache.nodes, 0, frame, reserved);
        cache.admit(&file, 0, frame, Admitted::Demand);
        Self { places: GuardSlots::new(&cache), cache, file, frame, hazards: Arc::new(Hazards::new()) }
    }

    fn guard(&self) -> PinnedPages {
        PinnedPages::take(&self.places, &self.hazards, &self.file, 100, 200).expect("the page is there")
    }

    /// This thread has slots, and the page's guard is lent.
    fn lent(self) -> Self {
        drop(self.guard());
        drop(self.guard());
        assert!(self.is_lent());
        self
    }

    fn is_lent(&self) -> bool {
        self.cache.pages.word(self.frame).has(LENT)
    }

    fn recall(&self) {
        self.cache.recall(std::iter::once(self.frame));
    }
}

#[test]
fn a_lent_guard_leaves_the_record_alone() {
    let lab = LendingFixture::new(Some(|| ())).lent();
    let word = lab.cache.pages.word(lab.frame);
    let guards: Vec<_> = (0..SLOTS).map(|_| lab.guard()).collect();
    assert!(word == lab.cache.pages.word(lab.frame) && word.is_stable() && !word.is_held());
    assert_eq!(lab.places.pages(), SLOTS as u64);
    let counted = lab.guard();
    assert!(lab.cache.pages.word(lab.frame).is_held(), "all slots are taken");
    drop((guards, counted));
    assert!(word == lab.cache.pages.word(lab.frame) && lab.places.pages() == 0);
}

#[test]
fn nothing_is_lent_without_a_fence_or_a_share() {
    let lab = LendingFixture::new(None);
    drop((lab.guard(), lab.guard(), lab.guard()));
    assert!(!lab.is_lent() && lab.cache.lending.leased() == 0);
    let mut lab = LendingFixture::new(Some(|| ())).lent();
    for _ in 0..10 {
        lab.hazards = Arc::new(Hazards::new());
        drop((lab.guard(), lab.guard()));
    }
    assert_eq!(lab.cache.lending.leased(), 2 * SLOTS as u64, "half of the quarter of 256 pages");
}

#[test]
fn a_recall_takes_back_what_no_thread_uses() {
    let lab = LendingFixture::new(Some(|| ())).lent();
    let guard = lab.guard();
    lab.recall();
    assert!(lab.is_lent(), "a thread uses it");
    std::thread::scope(|scope| drop(scope.spawn(|| drop(guard)).join()));
    lab.recall();
    assert!(!lab.is_lent() && !lab.cache.pages.word(lab.frame).is_held());
    assert!(lab.cache.pages.try_detach_idle(lab.frame));
}

#[test]
fn a_page_that_is_cut_off_goes_with_its_last_guard() {
    let lab = LendingFixture::new(Some(|| ())).lent();
    let (guard, free) = (lab.guard(), lab.cache.frames.free_count());
    lab.cache.drop_page(&lab.file, 0, lab.frame);
    assert!(lab.cache.frames.free_count() == free && guard.as_slice().is_some_and(|bytes| bytes.len() == 200));
    drop(guard);
    assert_eq!(lab.cache.frames.free_count(), free + 1);
    let lab = LendingFixture::new(Some(|| ())).lent();
    lab.cache.drop_page(&lab.file, 0, lab.frame);
    assert_eq!(lab.cache.frames.free_count(), free + 1, "no thread used the page");
}

#[test]
fn a_cache_lives_as_long_as_its_lent_guards() {
    for used in [false, true] {
        let lab = LendingFixture::new(Some(|| ())).lent();
        let guard = used.then(|| lab.guard());
        let cache: Weak<PageCache> = Arc::downgrade(&lab.cache);
        drop(lab);
        assert_eq!(cache.strong_count(), usize::from(used));
        assert!(guard.as_ref().is_none_or(|guard| guard.as_slice().is_some_and(|bytes| bytes.len() == 200)));
        drop(guard);
        assert_eq!(cache.strong_count(), 0);
    }
}

#[test]
fn readers_of_pages_that_are_written_seldom_lend() {
    let lab = LendingFixture::new(Some(|| ())).lent();
    let mut lent = 0;
    for _ in 0..10_000 {
        drop(lab.guard());
        lent += u64::from(lab.is_lent());
        lab.cache.recall_for_write(&lab.file, 0..1);
    }
    assert!(lent <= DEBT_FREE + 1 + 10_000 / u64::from(DEBT_PASSES), "{lent} of 10,000 guards were lent");
    for _ in 0..DEBT_MAX * u64::from(DEBT_PASSES) {
        drop(lab.guard());
        lab.recall();
    }
    drop(lab.guard());
    assert!(lab.is_lent(), "the debt is paid");
}
