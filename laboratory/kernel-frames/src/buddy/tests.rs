use super::*;

struct Rig {
    table: FrameTable,
    pageblocks: Pageblocks,
    counters: ZoneCounters,
}

impl Rig {
    fn new(frames: u32) -> (Self, Buddy) {
        let rig =
            Self { table: FrameTable::new(frames), pageblocks: Pageblocks::new(frames), counters: Default::default() };
        let buddy = Buddy::new(rig.ground());
        (rig, buddy)
    }

    fn ground(&self) -> Ground<'_> {
        Ground { table: &self.table, pageblocks: &self.pageblocks }
    }

    fn take(&mut self, buddy: &mut Buddy, order: u8, class: Mobility) -> Option<u32> {
        let ground = Ground { table: &self.table, pageblocks: &self.pageblocks };
        buddy.take(ground, order, class, &mut self.counters)
    }

    fn give(&mut self, buddy: &mut Buddy, first: u32, order: u8) {
        let ground = Ground { table: &self.table, pageblocks: &self.pageblocks };
        buddy.give(ground, first, order, &mut self.counters);
    }
}

#[test]
fn buddies_and_what_they_merge_to() {
    assert_eq!(buddy_of(8, 0), (9, 8));
    assert_eq!(buddy_of(9, 0), (8, 8));
    assert_eq!(buddy_of(12, 2), (8, 8));
    assert_eq!(buddy_of(1024, 9), (1536, 1024));
}

#[test]
fn a_zone_of_any_size_starts_with_the_largest_blocks_that_fit() {
    let (_, buddy) = Rig::new(2048 + 512 + 3);
    assert_eq!(buddy.free_frames(), 2563);
    let blocks: Vec<u32> = (0..=10).map(|order| buddy.blocks(order)[Mobility::Movable.index()]).collect();
    assert_eq!(blocks, [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn splitting_and_merging_are_inverse() {
    let (mut rig, mut buddy) = Rig::new(1024);
    let first = rig.take(&mut buddy, 0, Mobility::Movable).unwrap();
    assert_eq!((first, rig.counters.splits), (0, 10));
    assert_eq!(buddy.free_frames(), 1023);
    rig.give(&mut buddy, first, 0);
    assert_eq!(rig.counters.merges, 10);
    assert_eq!(buddy.blocks(10), [0, 0, 1]);
}

#[test]
fn blocks_do_not_merge_with_a_buddy_of_another_order() {
    let (mut rig, mut buddy) = Rig::new(1024);
    let quarters: Vec<u32> = (0..4).map(|_| rig.take(&mut buddy, 8, Mobility::Movable).unwrap()).collect();
    assert_eq!(quarters, [0, 256, 512, 768]);
    rig.give(&mut buddy, 0, 8);
    rig.give(&mut buddy, 512, 8);
    assert_eq!((buddy.blocks(8), rig.counters.merges), ([0, 0, 2], 0));
    rig.give(&mut buddy, 256, 8);
    assert_eq!((buddy.blocks(8), buddy.blocks(9)), ([0, 0, 1], [0, 0, 1]));
}

#[test]
fn a_block_that_will_merge_soon_goes_to_the_tail() {
    let (mut rig, mut buddy) = Rig::new(1024);
    let singles: Vec<u32> = (0..8).map(|_| rig.take(&mut buddy, 0, Mobility::Movable).unwrap()).collect();
    assert_eq!(singles, [0, 1, 2, 3, 4, 5, 6, 7]);
    // 6 and 7 merge to a block of order 1. A merge of 4 with 5 would then go on to order 2, so 4 is kept back.
    rig.give(&mut buddy, 6, 0);
    rig.give(&mut buddy, 7, 0);
    rig.give(&mut buddy, 0, 0);
    rig.give(&mut buddy, 4, 0);
    assert_eq!(rig.take(&mut buddy, 0, Mobility::Movable), Some(0));
    assert_eq!(rig.take(&mut buddy, 0, Mobility::Movable), Some(4));
}

#[test]
fn unmovable_requests_take_the_largest_block_and_its_labels() {
    let (mut rig, mut buddy) = Rig::new(4096);
    let first = rig.take(&mut buddy, 0, Mobility::Unmovable).unwrap();
    assert_eq!((rig.counters.fallbacks, rig.counters.steals), (1, 1));
    assert_eq!(rig.pageblocks.class(first), Mobility::Unmovable);
    assert_eq!(rig.pageblocks.class(first ^ 512), Mobility::Unmovable, "an order 10 block has two pageblocks");
    assert_eq!(buddy.blocks(10), [0, 0, 3]);
    assert_eq!(buddy.blocks(9), [1, 0, 0], "the rest is kept for its class");
    rig.take(&mut buddy, 0, Mobility::Unmovable).unwrap();
    assert_eq!(rig.counters.fallbacks, 1);
}

#[test]
fn the_label_changes_only_with_half_of_the_pageblock() {
    for (used, largest, changes) in [(256, 256, true), (320, 384, false)] {
        let (mut rig, mut buddy) = Rig::new(512);
        for _ in 0..used / 64 {
            rig.take(&mut buddy, 6, Mobility::Movable).unwrap();
        }
        let first = rig.take(&mut buddy, 0, Mobility::Reclaimable).unwrap();
        assert_eq!(first, largest);
        assert_eq!(rig.pageblocks.class(first) == Mobility::Reclaimable, changes, "{used} used");
        let left = buddy.free_frames();
        let of_class: u32 = (0..=10).map(|order| buddy.blocks(order)[Mobility::Reclaimable.index()] << order).sum();
        assert_eq!(of_class, left, "all that is free there has moved");
    }
}

#[test]
fn a_movable_request_that_may_not_steal_takes_of_the_smallest_block() {
    let (mut rig, mut buddy) = Rig::new(512);
    let all: Vec<u32> = (0..512).map(|_| rig.take(&mut buddy, 0, Mobility::Unmovable).unwrap()).collect();
    assert_eq!(all.len(), 512);
    // An order 3 block and a single frame, both of the unmovable class.
    for frame in 64..72 {
        rig.give(&mut buddy, frame, 0);
    }
    rig.give(&mut buddy, 200, 0);
    let steals = rig.counters.steals;
    assert_eq!(rig.take(&mut buddy, 0, Mobility::Movable), Some(200));
    assert_eq!(rig.counters.steals, steals);
    assert_eq!(rig.pageblocks.class(200), Mobility::Unmovable);
}

#[test]
fn fallback_prefers_the_nearer_class() {
    let (mut rig, mut buddy) = Rig::new(3072);
    rig.take(&mut buddy, 10, Mobility::Reclaimable).unwrap();
    let reclaimable = rig.take(&mut buddy, 10, Mobility::Reclaimable).unwrap();
    rig.give(&mut buddy, reclaimable, 10);
    // One order 10 block is reclaimable, one movable: the unmovable request takes the reclaimable one.
    assert_eq!(rig.take(&mut buddy, 10, Mobility::Unmovable), Some(reclaimable));
    assert!(rig.take(&mut buddy, 10, Mobility::Unmovable).is_some());
    assert_eq!(rig.take(&mut buddy, 0, Mobility::Unmovable), None, "exhausted");
}
