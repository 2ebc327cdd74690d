//! rule: a stream that is read once leaves pages in use alone

use super::*;
use crate::eviction::{Admitted, PageKey};
use crate::page::{DIRTY, Identity, PIN, PRESENT, UPTODATE};

fn clean(frames: u32) -> (TwoLists, PageTable) {
    let (lru, pages) = (TwoLists::new(), PageTable::new(frames));
    for number in 0..frames {
        let frame = FrameId::new(number);
        pages.occupy(frame, Identity { file: 0, index: u64::from(number) }, PRESENT | UPTODATE);
        let key = PageKey { file: 0, page: u64::from(number) };
        lru.admitted(&pages, &[Arrival { frame, key, why: Admitted::Demand }]);
    }
    (lru, pages)
}

fn victims(scan: &Scan) -> Vec<u32> {
    scan.victims.iter().map(|victim| victim.frame.raw()).collect()
}

#[test]
fn the_oldest_unused_pages_go_first() {
    let (lru, pages) = clean(8);
    for number in [1, 1, 2] {
        pages.touch(FrameId::new(number));
    }
    let scan = lru.victims(&pages, 3, 100);
    assert_eq!((victims(&scan), scan.scanned), (vec![0, 2, 3], 4));
    assert_eq!(victims(&lru.victims(&pages, 100, 100)), [4, 5, 6, 7]);
    assert_eq!(victims(&lru.victims(&pages, 100, 100)), [1], "the active list moves down when it is the longer");
}

#[test]
fn dirty_pages_are_parked_and_held_ones_are_kept() {
    let (lru, pages) = clean(4);
    pages.change(FrameId::new(0), 0, DIRTY);
    let _ = pages.hold(FrameId::new(1), PIN);
    let scan = lru.victims(&pages, 4, 4);
    assert_eq!(victims(&scan), [2, 3]);
    assert_eq!(pages.list(FrameId::new(0)), UNLISTED);
    assert_eq!(pages.list(FrameId::new(1)), INACTIVE);
    pages.change(FrameId::new(0), DIRTY, 0);
    lru.cleaned(&pages, &mut [FrameId::new(0)].into_iter());
    lru.cleaned(&pages, &mut [FrameId::new(0)].into_iter());
    assert!(!pages.unhold(FrameId::new(1), PIN));
    assert_eq!(victims(&lru.victims(&pages, 4, 4)), [1, 0]);
}

#[test]
fn the_number_of_pages_looked_at_is_bounded() {
    let (lru, pages) = clean(64);
    for number in (0..64).chain(0..64) {
        pages.touch(FrameId::new(number));
    }
    let scan = lru.victims(&pages, 4, 10);
    assert_eq!((victims(&scan), scan.scanned), (vec![], 10));
}

#[test]
fn a_stream_that_is_read_once_leaves_pages_in_use_alone() {
    let (lru, pages) = clean(64);
    let hot: Vec<u32> = (0..16).collect();
    for number in hot.iter().chain(&hot) {
        pages.touch(FrameId::new(*number));
    }
    let mut evicted = victims(&lru.victims(&pages, 8, 64));
    for _ in 0..20 {
        // Evicted pages come back as the next part of the stream, and are read once.
        for number in evicted.drain(..) {
            pages.touch(FrameId::new(number));
            lru.cleaned(&pages, &mut [FrameId::new(number)].into_iter());
        }
        evicted = victims(&lru.victims(&pages, 8, 64));
        assert!(evicted.iter().all(|number| *number >= 16), "{evicted:?}");
    }
}
