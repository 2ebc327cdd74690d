use super::*;
use crate::page::{Identity, PRESENT, UPTODATE};

fn key(number: u32) -> PageKey {
    PageKey { file: 0, page: u64::from(number) }
}

fn read_in(policy: &S3Fifo, pages: &PageTable, number: u32) {
    let frame = FrameId::new(number);
    pages.occupy(frame, Identity { file: 0, index: u64::from(number) }, PRESENT | UPTODATE);
    policy.admitted(pages, &[Arrival { frame, key: key(number), why: Admitted::Demand }]);
    pages.touch(frame);
}

fn victims(policy: &S3Fifo, pages: &PageTable, count: usize) -> Vec<u32> {
    let scan = policy.victims(pages, count, 1000);
    scan.victims.iter().map(|victim| victim.frame.raw()).collect()
}

/// With 40 frames, the small queue has 4.
fn small_queue(numbers: u32) -> (S3Fifo, PageTable) {
    let (policy, pages) = (S3Fifo::new(40), PageTable::new(40));
    (0..numbers).for_each(|number| read_in(&policy, &pages, number));
    (policy, pages)
}

#[test]
fn two_more_uses_take_a_page_to_main_and_one_does_not() {
    let (policy, pages) = small_queue(8);
    pages.touch(FrameId::new(0));
    pages.touch(FrameId::new(1));
    pages.touch(FrameId::new(1));
    let scan = policy.victims(&pages, 2, 100);
    assert_eq!(
        scan.victims.iter().map(|victim| (victim.frame.raw(), victim.remember)).collect::<Vec<_>>(),
        [(0, true), (2, true)]
    );
    assert_eq!((pages.list(FrameId::new(1)), pages.hits(FrameId::new(1))), (MAIN, 0));
}

#[test]
fn main_gives_while_the_small_queue_is_within_its_size_and_pages_there_lose_a_use_a_round() {
    let (policy, pages) = small_queue(4);
    for number in 10..13 {
        policy.remember(&[key(number)]);
        read_in(&policy, &pages, number);
        assert_eq!(pages.list(FrameId::new(number)), MAIN, "remembered");
    }
    pages.touch(FrameId::new(10));
    assert_eq!(victims(&policy, &pages, 3), [11, 12, 10]);
}

#[test]
fn dirty_pages_leave_their_queue_and_come_again() {
    let (policy, pages) = small_queue(8);
    pages.change(FrameId::new(0), 0, DIRTY);
    assert_eq!(victims(&policy, &pages, 1), [1]);
    assert_eq!(pages.list(FrameId::new(0)), UNLISTED);
    pages.change(FrameId::new(0), DIRTY, 0);
    policy.cleaned(&pages, &mut [FrameId::new(0)].into_iter());
    assert_eq!(pages.list(FrameId::new(0)), SMALL);
}
