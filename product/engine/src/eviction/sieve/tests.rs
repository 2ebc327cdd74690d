use super::*;
use crate::eviction::{Admitted, PageKey};
use crate::page::{Identity, PIN, PRESENT, UPTODATE};

fn queue(numbers: u32) -> (Sieve, PageTable) {
    let (policy, pages) = (Sieve::new(), PageTable::new(numbers));
    for number in 0..numbers {
        let (frame, page) = (FrameId::new(number), u64::from(number));
        pages.occupy(frame, Identity { file: 0, index: page }, PRESENT | UPTODATE);
        policy.admitted(&pages, &[Arrival { frame, key: PageKey { file: 0, page }, why: Admitted::Demand }]);
        pages.touch(frame);
    }
    (policy, pages)
}

fn victims(policy: &Sieve, pages: &PageTable, count: usize) -> Vec<u32> {
    policy.victims(pages, count, 1000).victims.iter().map(|victim| victim.frame.raw()).collect()
}

#[test]
fn pages_used_again_stay_where_they_are_and_the_hand_goes_on_from_where_it_was() {
    let (policy, pages) = queue(6);
    pages.touch(FrameId::new(0));
    pages.touch(FrameId::new(2));
    assert_eq!(victims(&policy, &pages, 2), [1, 3]);
    // Unlike with second chance, a page that was passed over comes again only after the hand was at the head.
    assert_eq!(victims(&policy, &pages, 4), [4, 5, 0, 2]);
}

#[test]
fn the_hand_moves_on_when_its_page_leaves() {
    let (policy, pages) = queue(4);
    assert_eq!(victims(&policy, &pages, 1), [0]);
    policy.removed(&pages, &[FrameId::new(1)]);
    assert_eq!(victims(&policy, &pages, 1), [2]);
}

#[test]
fn dirty_pages_leave_the_queue_and_held_ones_stay() {
    let (policy, pages) = queue(4);
    pages.change(FrameId::new(0), 0, DIRTY);
    let _ = pages.hold(FrameId::new(1), PIN);
    assert_eq!(victims(&policy, &pages, 1), [2]);
    assert_eq!([0, 1].map(|number| pages.list(FrameId::new(number))), [UNLISTED, QUEUED]);
    pages.change(FrameId::new(0), DIRTY, 0);
    policy.cleaned(&pages, &mut [FrameId::new(0)].into_iter());
    assert_eq!(victims(&policy, &pages, 2), [3, 0]);
}
