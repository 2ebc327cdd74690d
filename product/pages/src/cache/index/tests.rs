//! rule: 7: the index of the pages is part of the configured memory, and gives it back

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A small generator, so that failures repeat.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

const TAGS: [Tag; 3] = [Tag::Dirty, Tag::ToWrite, Tag::Unflushed];

fn put(index: &Index, nodes: &Nodes, page: u64, frame: FrameId) {
    let reserved = index.reserve_nodes(nodes, page, || None).expect("memory of the heap");
    index.insert(nodes, page, frame, reserved);
}

/// Clears a tag in pieces of `leaves` leaves.
fn clear(index: &Index, nodes: &Nodes, tag: Tag, leaves: u64) {
    let mut from = Some(0);
    while let Some(next) = from {
        from = index.clear_tag(nodes, next, tag, leaves);
    }
}

#[derive(Default)]
struct Model {
    pages: BTreeMap<u64, u32>,
    tags: [BTreeSet<u64>; 3],
}

fn check(index: &Index, nodes: &Nodes, model: &Model, from: u64) {
    assert_eq!(index.lookup(nodes, from).map(FrameId::raw), model.pages.get(&from).copied());
    assert_eq!(index.next_present(nodes, from), model.pages.range(from..).next().map(|(page, _)| *page));
    for tag in TAGS {
        let tagged = &model.tags[tag as usize];
        assert_eq!(index.has_tag(nodes, from, tag), tagged.contains(&from), "{tag:?} at {from}");
        assert_eq!(index.next_tagged(nodes, from, tag), tagged.range(from..).next().copied(), "{tag:?} from {from}");
        let untagged = (from..from + 200).find(|page| !tagged.contains(page)).unwrap_or(from + 200);
        assert_eq!(index.next_untagged(nodes, from, from + 200, tag), untagged, "{tag:?} from {from}");
    }
}

#[test]
fn random_changes_agree_with_a_map() {
    for seed in 1..40 {
        let (nodes, index, mut model) = (Nodes::on_heap(1 << 16), Index::new(), Model::default());
        let mut numbers = Numbers(seed * 7_919);
        let reach = [60, 5_000, 1 << 20, 1 << 51, 1, 2][seed as usize % 6];
        for _ in 0..2_000 {
            let page = if numbers.next(3) == 0 { numbers.next(reach) } else { numbers.next(reach.min(300)) };
            match numbers.next(8) {
                0..3 => {
                    let frame = numbers.next(1 << 30) as u32;
                    put(&index, &nodes, page, FrameId::new(frame));
                    model.pages.insert(page, frame);
                }
                3 => {
                    index.remove(&nodes, page);
                    model.pages.remove(&page);
                    for tagged in &mut model.tags {
                        tagged.remove(&page);
                    }
                }
                4 if numbers.next(50) == 0 => {
                    clear(&index, &nodes, Tag::Unflushed, 1 + numbers.next(3));
                    model.tags[Tag::Unflushed as usize].clear();
                }
                _ => {
                    let tag = TAGS[numbers.next(3) as usize];
                    let on = numbers.next(2) == 0;
                    if model.pages.contains_key(&page) {
                        index.set_tag(&nodes, page, tag, on);
                        let tagged = &mut model.tags[tag as usize];
                        if on {
                            tagged.insert(page)
                        } else {
                            tagged.remove(&page)
                        };
                    }
                }
            }
            let probe = if numbers.next(2) == 0 { page } else { numbers.next(reach) };
            check(&index, &nodes, &model, probe);
        }
    }
}

#[test]
fn an_emptied_index_gives_its_nodes_back() {
    let (nodes, index) = (Nodes::on_heap(1 << 16), Index::new());
    for round in 0..3 {
        for page in (0..1 << 18).step_by(97) {
            put(&index, &nodes, page, FrameId::new(page as u32));
            index.set_tag(&nodes, page, Tag::Dirty, true);
        }
        assert!(nodes.frames() > 100);
        for page in (0..1 << 18).step_by(97) {
            index.remove(&nodes, page);
        }
        assert_eq!(index.next_present(&nodes, 0), None);
        assert_eq!(index.next_tagged(&nodes, 0, Tag::Dirty), None);
        assert_eq!(nodes.frames(), 0, "round {round}");
    }
}

#[test]
fn a_dense_index_costs_less_than_ten_bytes_a_page() {
    let (nodes, index) = (Nodes::on_heap(1 << 16), Index::new());
    let pages = 1 << 18;
    for page in 0..pages {
        put(&index, &nodes, page, FrameId::new(page as u32));
    }
    let bytes = nodes.frames() * afflux_frames::FRAME_BYTES as u64;
    assert!(bytes <= 10 * pages, "{bytes} bytes for {pages} pages");
}

#[test]
fn a_page_is_told_how_many_nodes_it_needs() {
    let pages = [0, 1, 63, 64, 4095, 4096, 1 << 24, (1 << 52) - 1, 1 << 51];
    for (first, second) in pages.iter().flat_map(|first| pages.map(|second| (*first, second))) {
        let (nodes, index) = (Nodes::on_heap(64), Index::new());
        for (page, frame) in [(first, 7), (second, 8)] {
            let lacking = index.lacking(&nodes, page);
            let before = nodes.in_use();
            put(&index, &nodes, page, FrameId::new(frame));
            assert_eq!(nodes.in_use() - before, lacking, "page {page} of {first} and {second}");
            assert_eq!(index.lacking(&nodes, page), 0);
        }
        assert_eq!(index.lookup(&nodes, second).map(FrameId::raw), Some(8));
        index.remove(&nodes, first);
        index.remove(&nodes, second);
        assert_eq!((nodes.in_use(), nodes.frames()), (0, 0), "pages {first} and {second}");
    }
}

#[test]
fn nodes_come_from_the_arena_and_go_back() {
    let arena = std::sync::Arc::new(afflux_frames::Frames::new(256 << 10).unwrap());
    let (nodes, index) = (Nodes::new(std::sync::Arc::clone(&arena)), Index::new());
    let all = arena.free_count();
    assert!(index.reserve_nodes(&nodes, 64, || None).is_none(), "there is no memory for its nodes");
    let take = || arena.allocate(afflux_frames::Effort::Reserve);
    let mut pages = Vec::new();
    while let Some(reserved) = index.reserve_nodes(&nodes, (pages.len() as u64 + 1) << 12, take) {
        let page = (pages.len() as u64 + 1) << 12;
        index.insert(&nodes, page, FrameId::new(page as u32), reserved);
        pages.push(page);
    }
    assert_eq!(arena.free_count(), 0);
    assert_eq!(nodes.frames(), u64::from(all));
    assert!(pages.len() > 300, "{} pages have their nodes in {all} frames", pages.len());
    for (at, page) in pages.iter().enumerate() {
        assert_eq!(index.lookup(&nodes, *page), Some(FrameId::new(*page as u32)), "page {at}");
    }
    // The remaining pages need few frames: free nodes are reused before a frame is taken.
    for page in &pages[20..] {
        index.remove(&nodes, *page);
    }
    assert!(nodes.frames() < 10, "{} frames for 20 pages", nodes.frames());
    for page in &pages[..20] {
        assert_eq!(index.lookup(&nodes, *page), Some(FrameId::new(*page as u32)));
        index.remove(&nodes, *page);
    }
    assert_eq!((nodes.frames(), arena.free_count()), (0, all));
}

/// A page deep in an empty file needs more nodes than a frame has, and a frame for itself.
#[test]
fn a_reader_with_one_frame_at_a_time_gets_its_page() {
    let arena = std::sync::Arc::new(afflux_frames::Frames::new(256 << 10).unwrap());
    for first in [None, Some(0)] {
        let (nodes, index) = (Nodes::new(std::sync::Arc::clone(&arena)), Index::new());
        first.inspect(|page| put(&index, &nodes, *page, FrameId::new(1)));
        let tries = (0..8).take_while(|_| {
            let mut hand = arena.allocate(afflux_frames::Effort::Reserve);
            let lacks = index.reserve_nodes(&nodes, 1 << 50, || hand.take()).is_none() || hand.is_none();
            hand.into_iter().for_each(|frame| arena.free(frame));
            lacks
        });
        assert!(tries.count() <= 2, "with {first:?} in the index");
        nodes.give_back_unused();
    }
}

/// A frame of nodes went back to the arena during a lookup through it, and holds a page's bytes.
#[test]
fn a_lookup_through_a_pages_bytes_ends_inside_the_arena() {
    let (nodes, index) = (Nodes::on_heap(64), Index::new());
    let mut numbers = Numbers(3);
    put(&index, &nodes, 1 << 40, FrameId::new(1));
    for _ in 0..2_000 {
        let seed = Numbers(numbers.next(u64::MAX) | 1).0;
        for number in 0..nodes.in_use() as u32 {
            nodes.scribble(number, |at| Numbers(seed + at as u64 + u64::from(number)).next(1 << (seed % 33)) as u32);
        }
        let page = numbers.next(1 << 42);
        // Any frame may come out, or none: the caller checks its identity.
        let _ = index.lookup(&nodes, page);
    }
}

#[test]
fn lookups_beside_changes_find_the_right_frame_or_a_recognisably_wrong_one() {
    // Page p of the file holds frame p; another file's pages hold frames from 1 << 20 on. So a lookup that strays
    // through a reused node cannot be mistaken for a hit.
    let (nodes, index, other) = (Nodes::on_heap(1 << 16), Index::new(), Index::new());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..3 {
            let (nodes, index, stop) = (&nodes, &index, &stop);
            scope.spawn(move || {
                let mut numbers = Numbers(seed);
                while !stop.load(Ordering::Relaxed) {
                    let page = numbers.next(8_192);
                    if let Some(frame) = index.lookup(nodes, page) {
                        assert!(u64::from(frame.raw()) == page || frame.raw() >= 1 << 20 || frame.raw() < 512);
                    }
                }
            });
        }
        let mut numbers = Numbers(99);
        for _ in 0..200_000 {
            let page = 512 + numbers.next(8_192 - 512);
            put(&index, &nodes, page, FrameId::new(page as u32));
            put(&other, &nodes, page * 64, FrameId::new((1 << 20) + page as u32));
            let gone = 512 + numbers.next(8_192 - 512);
            index.remove(&nodes, gone);
            other.remove(&nodes, gone * 64);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn runs_are_counted_within_a_leaf_and_across() {
    const PAGES: u64 = 200;
    let runs =
        |pages: &BTreeSet<u64>| pages.iter().filter(|page| **page == 0 || !pages.contains(&(**page - 1))).count();
    for stride in [1, 3, 7, 11, 13, PAGES - 1] {
        let (nodes, index, mut tagged) = (Nodes::on_heap(1 << 16), Index::new(), BTreeSet::new());
        (0..PAGES).for_each(|page| put(&index, &nodes, page, FrameId::new(page as u32)));
        let order = || (0..PAGES).map(|at| at * stride % PAGES);
        for (page, on) in order().map(|page| (page, true)).chain(order().map(|page| (page, false))) {
            let before = runs(&tagged) as i64;
            if on {
                tagged.insert(page)
            } else {
                tagged.remove(&page)
            };
            let more = index.set_tag_in_run(&nodes, page, Tag::Dirty, on);
            assert_eq!(more, runs(&tagged) as i64 - before, "page {page}, stride {stride}");
            // Setting a tag to its present value changes nothing.
            assert_eq!(index.set_tag_in_run(&nodes, page, Tag::Dirty, on), 0);
        }
    }
}

#[test]
fn a_page_that_is_alone_needs_no_node_and_takes_its_tags_along() {
    let (nodes, index) = (Nodes::on_heap(1 << 16), Index::new());
    put(&index, &nodes, 0, FrameId::new(9));
    assert_eq!(index.set_tag_in_run(&nodes, 0, Tag::Dirty, true), 1);
    assert_eq!(index.set_tag_in_run(&nodes, 0, Tag::Dirty, true), 0, "it was there");
    index.set_tag(&nodes, 0, Tag::Unflushed, true);
    put(&index, &nodes, 0, FrameId::new(u32::MAX - 1));
    assert_eq!(index.frame(&nodes, 0), Some(FrameId::new(u32::MAX - 1)), "another frame, the same page");
    assert!(index.has_tagged(&nodes, Tag::Dirty) && !index.has_tagged(&nodes, Tag::ToWrite));
    assert_eq!((index.lookup(&nodes, 1), index.frame(&nodes, 1), index.next_present(&nodes, 1)), (None, None, None));
    index.remove(&nodes, 1);
    assert_eq!(nodes.frames(), 0);
    put(&index, &nodes, 1, FrameId::new(3));
    assert_ne!(nodes.frames(), 0);
    for tag in TAGS {
        assert_eq!(index.has_tag(&nodes, 0, tag), tag != Tag::ToWrite);
        assert!(!index.has_tag(&nodes, 1, tag));
    }
    assert_eq!(index.set_tag_in_run(&nodes, 1, Tag::Dirty, true), 0, "it makes the run longer");
    index.remove(&nodes, 1);
    index.remove(&nodes, 0);
    put(&index, &nodes, 0, FrameId::new(4));
    assert!(TAGS.iter().all(|tag| !index.has_tagged(&nodes, *tag)));
    assert_eq!(index.set_tag_in_run(&nodes, 0, Tag::ToWrite, true), 1);
    assert_eq!(index.set_tag_in_run(&nodes, 0, Tag::ToWrite, false), -1);
    index.set_tag(&nodes, 0, Tag::Unflushed, true);
    clear(&index, &nodes, Tag::Unflushed, 1);
    assert!(!index.has_tagged(&nodes, Tag::Unflushed));
}
