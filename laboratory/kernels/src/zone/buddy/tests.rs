use super::*;

impl Buddy {
    /// The number of blocks of each class in the lists of this order.
    pub(in crate::zone) fn blocks(&self, order: u8) -> [u32; Mobility::COUNT] {
        self.lists[usize::from(order)].map(|list| list.len)
    }
}

fn buddy_of_frames(frames: u32) -> (MemMap, Buddy) {
    let map = MemMap::new(frames);
    let buddy = Buddy::new(&map);
    (map, buddy)
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
    let (_, buddy) = buddy_of_frames(2048 + 512 + 3);
    assert_eq!(buddy.free_frames(), 2563);
    let blocks: Vec<u32> = (0..=10).map(|order| buddy.blocks(order)[Mobility::Movable.index()]).collect();
    assert_eq!(blocks, [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn splitting_and_merging_are_inverse() {
    let (map, mut buddy) = buddy_of_frames(1024);
    let first = buddy.take(&map, 0, Mobility::Movable).unwrap();
    assert_eq!((first, buddy.free_frames()), (0, 1023));
    assert!((0..10).all(|order| buddy.blocks(order) == [0, 0, 1]), "ten splits");
    buddy.give(&map, first, 0);
    assert_eq!(buddy.blocks(10), [0, 0, 1]);
}

#[test]
fn blocks_do_not_merge_with_a_buddy_of_another_order() {
    let (map, mut buddy) = buddy_of_frames(1024);
    let quarters: Vec<u32> = (0..4).map(|_| buddy.take(&map, 8, Mobility::Movable).unwrap()).collect();
    assert_eq!(quarters, [0, 256, 512, 768]);
    buddy.give(&map, 0, 8);
    buddy.give(&map, 512, 8);
    assert_eq!(buddy.blocks(8), [0, 0, 2]);
    buddy.give(&map, 256, 8);
    assert_eq!((buddy.blocks(8), buddy.blocks(9)), ([0, 0, 1], [0, 0, 1]));
}

#[test]
fn a_block_that_will_merge_soon_goes_to_the_tail() {
    let (map, mut buddy) = buddy_of_frames(1024);
    let singles: Vec<u32> = (0..8).map(|_| buddy.take(&map, 0, Mobility::Movable).unwrap()).collect();
    assert_eq!(singles, [0, 1, 2, 3, 4, 5, 6, 7]);
    // 6 and 7 merge to a block of order 1. A merge of 4 with 5 would then go on to order 2, so 4 is reserved.
    buddy.give(&map, 6, 0);
    buddy.give(&map, 7, 0);
    buddy.give(&map, 0, 0);
    buddy.give(&map, 4, 0);
    assert_eq!(buddy.take(&map, 0, Mobility::Movable), Some(0));
    assert_eq!(buddy.take(&map, 0, Mobility::Movable), Some(4));
}

#[test]
fn unmovable_requests_take_the_largest_block_and_its_labels() {
    let (map, mut buddy) = buddy_of_frames(4096);
    let first = buddy.take(&map, 0, Mobility::Unmovable).unwrap();
    assert_eq!(map.pageblock_class(first), Mobility::Unmovable);
    assert_eq!(map.pageblock_class(first ^ 512), Mobility::Unmovable, "an order 10 block has two pageblocks");
    assert_eq!(buddy.blocks(10), [0, 0, 3]);
    assert_eq!(buddy.blocks(9), [1, 0, 0], "the rest is kept for its class");
    buddy.take(&map, 0, Mobility::Unmovable).unwrap();
    assert_eq!(buddy.blocks(10), [0, 0, 3], "the rest serves the next request");
}

#[test]
fn the_label_changes_only_with_half_of_the_pageblock() {
    for (used, largest, changes) in [(256, 256, true), (320, 384, false)] {
        let (map, mut buddy) = buddy_of_frames(512);
        for _ in 0..used / 64 {
            buddy.take(&map, 6, Mobility::Movable).unwrap();
        }
        let first = buddy.take(&map, 0, Mobility::Reclaimable).unwrap();
        assert_eq!(first, largest);
        assert_eq!(map.pageblock_class(first) == Mobility::Reclaimable, changes, "{used} used");
        let left = buddy.free_frames();
        let of_class: u32 = (0..=10).map(|order| buddy.blocks(order)[Mobility::Reclaimable.index()] << order).sum();
        assert_eq!(of_class, left, "all that is free there has moved");
    }
}

#[test]
fn a_movable_request_that_may_not_steal_takes_of_the_smallest_block() {
    let (map, mut buddy) = buddy_of_frames(512);
    let all: Vec<u32> = (0..512).map(|_| buddy.take(&map, 0, Mobility::Unmovable).unwrap()).collect();
    assert_eq!(all.len(), 512);
    // An order 3 block and a single frame, both of the unmovable class.
    for frame in 64..72 {
        buddy.give(&map, frame, 0);
    }
    buddy.give(&map, 200, 0);
    assert_eq!(buddy.take(&map, 0, Mobility::Movable), Some(200));
    assert_eq!(buddy.blocks(3), [1, 0, 0], "the larger block stays with its class");
    assert_eq!(map.pageblock_class(200), Mobility::Unmovable);
}

#[test]
fn fallback_prefers_the_nearer_class() {
    let (map, mut buddy) = buddy_of_frames(3072);
    buddy.take(&map, 10, Mobility::Reclaimable).unwrap();
    let reclaimable = buddy.take(&map, 10, Mobility::Reclaimable).unwrap();
    buddy.give(&map, reclaimable, 10);
    // One order 10 block is reclaimable, one movable: the unmovable request takes the reclaimable one.
    assert_eq!(buddy.take(&map, 10, Mobility::Unmovable), Some(reclaimable));
    assert!(buddy.take(&map, 10, Mobility::Unmovable).is_some());
    assert_eq!(buddy.take(&map, 0, Mobility::Unmovable), None, "exhausted");
}
