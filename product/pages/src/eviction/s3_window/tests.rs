//! rule: a stream that is read once leaves pages in use alone
//! kept in: `product/pages/src/eviction/s3_window.rs`

use super::*;
use crate::eviction::Admitted;
use crate::page::{PIN, PRESENT, PageIdentity, READING, UPTODATE, WRITEBACK};

/// A policy and its frame table: page `n` is in frame `n`.
struct World {
    policy: S3Window,
    pages: PageTable,
}

impl World {
    fn new(frames: u32) -> Self {
        let now = InForce { small: Some(frames / 10), adoptions: 0 };
        Self { policy: S3Window::with_choice(frames, RuleChoice::fixed(frames, now)), pages: PageTable::new(frames) }
    }

    /// A world of 100 frames: 5 of fresh, 10 of fresh and probation together, as all worlds here have in proportion.
    /// Pages 0 to 14 were read and are in probation (0 to 9) and fresh (10 to 14).
    fn with_small_queues() -> Self {
        let world = Self::new(100);
        (0..15).for_each(|number| world.read_in(number));
        world
    }

    fn key(number: u32) -> PageKey {
        PageKey { file: 3, page: u64::from(number) }
    }

    fn come(&self, number: u32, why: Admitted) {
        let frame = FrameId::new(number);
        let dirty = if why == Admitted::Written { DIRTY } else { 0 };
        self.pages.occupy(frame, PageIdentity { file: 0, index: u64::from(number) }, PRESENT | UPTODATE | dirty);
        if why == Admitted::Ahead {
            self.pages.note_unread(frame);
        }
        self.policy.admitted(&self.pages, &[Arrival { frame, key: Self::key(number), why }]);
    }

    /// A page comes and its reader reads it.
    fn read_in(&self, number: u32) {
        self.come(number, Admitted::Demand);
        self.touch(number, 1);
    }

    fn touch(&self, number: u32, times: usize) {
        (0..times).for_each(|_| self.pages.touch(FrameId::new(number)));
    }

    fn on(&self, number: u32) -> u8 {
        listed(&self.pages, FrameId::new(number))
    }

    /// `count` victims leave the cache.
    fn evict(&self, count: usize) -> Vec<u32> {
        let scan = self.policy.victims(&self.pages, count, 1000);
        scan.victims
            .iter()
            .map(|victim| {
                self.policy.removed(&self.pages, &[victim.frame]);
                assert!(self.pages.try_detach_idle(victim.frame) && self.pages.try_release(victim.frame));
                if victim.remember {
                    self.policy.remember(&[Self::key(victim.frame.raw())]);
                }
                victim.frame.raw()
            })
            .collect()
    }

    fn set_dirty(&self, number: u32) {
        self.pages.change(FrameId::new(number), 0, DIRTY);
    }

    fn clean(&self, number: u32) {
        self.pages.change(FrameId::new(number), DIRTY, 0);
        self.policy.cleaned(&self.pages, &mut [FrameId::new(number)].into_iter());
    }
}

#[test]
fn pages_come_to_fresh_and_its_oldest_go_on_to_probation() {
    let world = World::with_small_queues();
    assert!((0..10).all(|number| world.on(number) == PROBATION) && (10..15).all(|number| world.on(number) == FRESH));
    assert_eq!(world.evict(1), [0], "the oldest");
}

#[test]
fn a_burst_just_after_arrival_is_not_popularity() {
    let world = World::new(100);
    world.read_in(0);
    world.touch(0, 3);
    (1..10).for_each(|number| world.read_in(number));
    assert_eq!((world.on(0), world.pages.hits(FrameId::new(0))), (PROBATION, 0));
    assert_eq!(world.evict(1), [0]);
}

#[test]
fn a_page_hit_in_probation_goes_to_main_and_begins_anew_there() {
    let world = World::with_small_queues();
    world.touch(0, 2);
    assert_eq!(world.evict(1), [1]);
    assert_eq!((world.on(0), world.pages.hits(FrameId::new(0))), (MAIN, 0));
}

#[test]
fn the_use_that_a_page_was_read_for_is_no_hit() {
    let world = World::new(100);
    (0..20).for_each(|number| world.come(number, Admitted::Ahead));
    world.touch(0, 1);
    world.touch(1, 2);
    assert_eq!(world.pages.unread.pages(), 18);
    (2..20).for_each(|number| world.touch(number, 1));
    assert_eq!(world.evict(3), [0, 2, 3], "used once, in probation; page 1 was used again");
    assert_eq!(world.on(1), MAIN);
}

#[test]
fn a_page_that_went_from_probation_comes_back_to_main() {
    let world = World::with_small_queues();
    assert_eq!(world.evict(3), [0, 1, 2]);
    world.come(0, Admitted::Demand);
    world.come(1, Admitted::Ahead);
    assert_eq!((world.on(0), world.on(1)), (MAIN, FRESH), "readahead is not asked for");
    world.come(2, Admitted::Written);
    assert_eq!(world.on(2), COMING_BACK);
    world.clean(2);
    assert_eq!(world.on(2), MAIN);
}

/// Pages 0 and 1 in main, with `hits`, and nothing else but a fresh page.
fn with_main(hits: [usize; 2]) -> World {
    let world = World::new(100);
    for number in [0, 1] {
        world.policy.remember(&[World::key(number)]);
        world.read_in(number);
        world.touch(number, hits[number as usize]);
    }
    world.read_in(2);
    world
}

#[test]
fn a_page_of_main_goes_after_as_many_rounds_as_it_has_hits() {
    let world = with_main([1, 0]);
    assert_eq!(world.evict(1), [1]);
    assert_eq!(world.evict(1), [0]);
    world.come(0, Admitted::Demand);
    assert_eq!(world.on(0), FRESH, "what main gives is not remembered");
    let world = with_main([3, 2]);
    assert_eq!(world.evict(1), [1]);
    assert_eq!(world.policy.victims(&world.pages, 1, 10).scanned, 1, "its three hits were used up together");
}

#[test]
fn probation_gives_while_the_small_queues_are_over_their_size() {
    let world = with_main([0, 0]);
    (3..13).for_each(|number| world.read_in(number));
    assert_eq!(world.evict(3), [2, 0, 1], "11 pages, then 10; the next is main's");
}

#[test]
fn pages_not_used_yet_stay_up_to_a_quarter_of_the_frames() {
    let with_unread = |unread: u32| {
        let world = World::new(100);
        (0..unread).for_each(|number| world.come(number, Admitted::Ahead));
        (unread..unread + 20).for_each(|number| world.read_in(number));
        world
    };
    assert_eq!(with_unread(25).evict(3), [25, 26, 27], "the oldest that were used");
    let world = with_unread(27);
    assert_eq!(world.evict(3), [0, 1, 27], "the oldest, until there are as many as may be");
    world.come(0, Admitted::Demand);
    assert_ne!(world.on(0), MAIN, "nobody ever used it, so it is not remembered");
}

#[test]
fn a_page_that_nobody_comes_for_is_spared_three_times() {
    let world = World::new(100);
    world.come(0, Admitted::Ahead);
    let spared = [(); 4].map(|()| world.pages.try_spare_unread(FrameId::new(0)));
    assert_eq!(spared, [true, true, true, false]);
    world.touch(0, 1);
    assert_eq!(world.pages.hits(FrameId::new(0)), 0, "being spared is no hit");
}

/// Its scan comes round to the same unread page again and again.
#[test]
fn an_unread_page_goes_once_it_was_spared_three_times() {
    let world = World::new(100);
    (0..20).for_each(|number| world.come(number, Admitted::Ahead));
    (0..20).for_each(|number| {
        let frame = FrameId::new(number);
        while world.pages.try_spare_unread(frame) {}
    });
    assert_eq!(world.evict(2), [0, 1], "few pages are unread, but nobody came for these");
}

#[test]
fn the_small_queues_grow_for_pages_not_used_yet() {
    let sizes = Sizes::of(1000);
    assert_eq!([0, 80, 200, 250, 999].map(|unread| sizes.small_target(100, unread)), [100, 100, 250, 312, 375]);
    let world = World::new(100);
    world.policy.remember(&[World::key(99)]);
    world.read_in(99);
    (0..20).for_each(|number| world.come(number, Admitted::Ahead));
    (20..25).for_each(|number| world.read_in(number));
    assert_eq!(world.evict(1), [99], "25 pages are 1.25 times the 20 not used yet: main gives");
}

#[test]
fn a_dirty_page_leaves_its_queue_when_the_hand_meets_it() {
    let world = World::with_small_queues();
    world.set_dirty(0);
    world.set_dirty(1);
    world.touch(1, 1);
    assert_eq!(world.evict(1), [2]);
    assert_eq!((world.on(0), world.on(1)), (PARKED, PARKED));
    world.policy.cleaned(&world.pages, &mut [FrameId::new(0)].into_iter());
    assert_eq!(world.on(0), PARKED, "a part of it was written; it is dirty still");
    assert_eq!(world.policy.victims(&world.pages, 1, 1).scanned, 1);
    world.clean(0);
    world.clean(1);
    assert_eq!((world.on(0), world.on(1)), (PROBATION, MAIN), "to main if it was hit");
    assert_eq!(world.evict(1), [0], "else it goes next");
    world.clean(1);
    assert_eq!(world.on(1), MAIN, "told twice");
}

#[test]
fn pages_in_flight_are_parked_too() {
    let world = World::with_small_queues();
    world.set_dirty(0);
    world.pages.change(FrameId::new(0), DIRTY, WRITEBACK);
    assert_eq!(world.evict(1), [1]);
    assert_eq!(world.on(0), PARKED);
}

#[test]
fn a_page_written_is_on_no_queue_before_it_is_clean() {
    let world = World::new(100);
    world.come(0, Admitted::Written);
    assert_eq!(world.on(0), COMING);
    assert_eq!(world.policy.victims(&world.pages, 1, 100).scanned, 0);
    world.touch(0, 1);
    world.clean(0);
    assert_eq!((world.on(0), world.pages.hits(FrameId::new(0))), (FRESH, 1), "the write was its first use");
}

#[test]
fn a_page_that_goes_on_in_another_frame_keeps_its_place_and_is_hit() {
    let world = World::with_small_queues();
    let go_on = |old: u32, new: u32, flags: u64| {
        let identity = PageIdentity { file: 0, index: u64::from(old) };
        world.pages.occupy(FrameId::new(new), identity, PRESENT | UPTODATE | flags);
        world.policy.replaced(&world.pages, FrameId::new(old), FrameId::new(new));
        world.policy.removed(&world.pages, &[FrameId::new(old)]);
    };
    go_on(0, 20, DIRTY);
    assert_eq!((world.on(0), world.on(20), world.pages.hits(FrameId::new(20))), (UNLISTED, PARKED, 1));
    world.clean(20);
    assert_eq!(world.on(20), MAIN);
    go_on(12, 21, DIRTY);
    assert_eq!(world.on(21), COMING);
    go_on(1, 22, 0);
    assert_eq!(world.on(22), MAIN, "a clean one is listed at once");
}

#[test]
fn a_held_page_is_passed_over() {
    let world = World::with_small_queues();
    let _ = world.pages.hold(FrameId::new(0), PIN);
    assert_eq!(world.evict(4), [1, 2, 3, 4]);
    assert_eq!(world.on(0), PROBATION);
}

#[test]
fn after_too_many_looks_the_next_page_goes() {
    let world = World::new(1000);
    for number in 0..500 {
        world.policy.remember(&[World::key(number)]);
        world.read_in(number);
        world.touch(number, 3);
    }
    let scan = world.policy.victims(&world.pages, 2, 1000);
    assert_eq!((scan.victims.len(), scan.scanned), (2, 2 * (LOOKS_MAX + 1)), "all of main was hit three times");
}

#[test]
fn pages_passed_over_by_reclaim_come_anew() {
    let world = World::with_small_queues();
    let scan = world.policy.victims(&world.pages, 1, 10);
    assert_eq!((scan.victims[0].frame.raw(), world.on(0)), (0, UNLISTED));
    world.policy.cleaned(&world.pages, &mut [FrameId::new(0)].into_iter());
    assert_eq!(world.on(0), FRESH);
}

#[test]
fn a_cache_of_eight_frames_evicts_whatever_is_in_it() {
    let world = World::new(8);
    (0..8).for_each(|number| world.come(number, Admitted::Ahead));
    assert_eq!(world.evict(8).len(), 8);
}

#[test]
fn a_page_that_is_being_read_is_on_no_queue() {
    let world = World::new(100);
    let frame = FrameId::new(0);
    world.pages.occupy(frame, PageIdentity { file: 0, index: 0 }, PRESENT | READING);
    // An eviction had chosen the same page in the same frame. The page went and comes again, so it cannot go after all.
    world.policy.cleaned(&world.pages, &mut std::iter::once(frame));
    world.pages.change(frame, READING, UPTODATE);
    world.policy.admitted(&world.pages, &[Arrival { frame, key: World::key(0), why: Admitted::Demand }]);
    (1..30).for_each(|number| world.read_in(number));
    let gone = world.evict(30);
    assert_eq!(gone.iter().filter(|number| **number == 0).count(), 1);
    assert_eq!(gone.len(), 30);
}

/// The small queues of 1,000 frames have all pages, and may have 20 from now on.
fn to_be_adopted(why: impl Fn(u32) -> Admitted) -> World {
    let world = World::new(1000);
    for number in 0..900 {
        world.come(number, why(number));
        world.touch(number, 1);
    }
    world.policy.choice.set(InForce { small: Some(20), adoptions: 1 });
    world
}

fn count_on(world: &World, queue: u8, frames: u32) -> usize {
    (0..frames).filter(|number| world.on(*number) == queue).count()
}

#[test]
fn adopted_pages_go_to_main_in_bounded_steps_and_none_leaves() {
    let world = to_be_adopted(|_| Admitted::Demand);
    world.touch(3, 1);
    let mut adopted = 0;
    for number in 900..920 {
        world.read_in(number);
        let more = count_on(&world, MAIN, 1000) - adopted;
        assert!(more <= ADOPTED_MAX as usize, "{more} at once");
        adopted += more;
    }
    // The small queues had their 20 before the last of these came.
    assert!((880..900).contains(&adopted), "{adopted}");
    assert!((0..880).all(|number| world.on(number) == MAIN), "the oldest are adopted");
    assert_eq!(world.pages.hits(FrameId::new(3)), 1, "hits are retained");
    world.read_in(920);
    assert_eq!(count_on(&world, MAIN, 1000), adopted, "once");
    assert_eq!(world.evict(1), [adopted as u32], "the oldest of the small queues");
}

#[test]
fn pages_read_ahead_and_not_used_again_are_not_adopted() {
    let world = to_be_adopted(|number| if number < 200 { Admitted::Ahead } else { Admitted::Demand });
    world.touch(7, 1);
    world.come(900, Admitted::Ahead);
    (901..940).for_each(|number| world.read_in(number));
    let on_main = |range: std::ops::Range<u32>| range.filter(|number| world.on(*number) == MAIN).count();
    assert_eq!((on_main(0..200), on_main(200..880)), (1, 680), "page 7 was used again; the newest 20 may stay");
    assert_ne!(world.on(900), MAIN, "nobody asked for it");
    let gone = world.evict(30);
    assert!(gone.iter().all(|number| *number < 200 || *number >= 880), "{gone:?}");
}

#[test]
fn a_page_used_once_after_readahead_bears_no_mark_in_its_next_life() {
    let world = World::new(100);
    let frame = FrameId::new(0);
    world.come(0, Admitted::Ahead);
    assert!(world.pages.is_ahead_without_hit(frame), "nobody has used it");
    world.touch(0, 1);
    assert!(world.pages.is_ahead_without_hit(frame) && world.pages.unread.pages() == 0, "what it came for");
    world.touch(0, 1);
    assert!(!world.pages.is_ahead_without_hit(frame));
    world.policy.removed(&world.pages, &[frame]);
    assert!(world.pages.try_detach_idle(frame) && world.pages.try_release(frame));
    world.read_in(0);
    assert!(!world.pages.is_ahead_without_hit(frame));
}

#[test]
fn without_small_queues_pages_come_to_main_and_the_least_recent_goes() {
    let world = World::with_small_queues();
    world.policy.choice.set(InForce { small: None, adoptions: 0 });
    world.read_in(15);
    assert_eq!((world.on(15), world.on(0), world.on(1), world.on(2)), (MAIN, MAIN, MAIN, PROBATION), "two drain");
    (16..23).for_each(|number| world.read_in(number));
    assert_eq!(count_on(&world, MAIN, 100), 23, "all are main's");
    world.touch(0, 3);
    assert_eq!(world.evict(3), [1, 15, 2]);
    assert_eq!((world.on(0), world.pages.hits(FrameId::new(0))), (MAIN, 0), "its hits were taken at once");
    world.come(1, Admitted::Demand);
    assert_eq!(world.on(1), MAIN);
}
