//! Buddy lists by order and mobility class, with pageblocks that group frames by class.
//!
//! Owns: the free blocks of a zone, splitting, merging, fallback.
//! Does not own: the lock (the zone's), the per-CPU lists, watermarks.
//! Invariants: below order 10, two free buddies of one order are never adjacent. A free block is in the list of the
//! class that its pageblock had at the time of the free. `free_frames` is the sum of the lists.
//!
//! A free block's tag records the class of its list. So the block is found there even after its pageblock has got
//! another class.

use super::block::{MAX_ORDER, PAGEBLOCK_ORDER};
use super::mem_map::{BlockState, List, MemMap, Tag};
use super::{Mobility, Temperature};

#[cfg(test)]
mod tests;

const ORDERS: usize = MAX_ORDER as usize + 1;
const PAGEBLOCK_FRAMES: u32 = 1 << PAGEBLOCK_ORDER;

/// The free blocks of one zone (`free_area`).
pub(super) struct Buddy {
    lists: [[List; Mobility::COUNT]; ORDERS],
    free_frames: u32,
}

/// The buddy of a block, and the first frame of the two merged.
const fn buddy_of(first: u32, order: u8) -> (u32, u32) {
    let buddy = first ^ (1 << order);
    (buddy, first & buddy)
}

impl Buddy {
    /// All frames, free, in the largest blocks that fit.
    pub(super) fn new(map: &MemMap) -> Self {
        let mut buddy = Self { lists: [[List::EMPTY; Mobility::COUNT]; ORDERS], free_frames: 0 };
        let mut first = 0;
        while first < map.len() {
            let fits = (map.len() - first).ilog2().min(u32::from(MAX_ORDER));
            let order = first.trailing_zeros().min(fits) as u8;
            buddy.link(map, first, order, Mobility::Movable, Temperature::Cold);
            first += 1 << order;
        }
        buddy
    }

    pub(super) fn free_frames(&self) -> u32 {
        self.free_frames
    }

    /// Takes a block (`__rmqueue`). A larger block is split; as a last resort, another class gives a block.
    pub(super) fn take(&mut self, map: &MemMap, order: u8, class: Mobility) -> Option<u32> {
        let found = (order..=MAX_ORDER).find(|at| !self.list(*at, class).is_empty());
        let first = match found {
            Some(at) => self.take_from(map, at, class, order)?,
            None => self.fall_back(map, order, class)?,
        };
        map.set_tag(first, Tag::new(BlockState::Used, order, class));
        Some(first)
    }

    /// Gives a block back and merges it as long as its buddy is free (`__free_one_page`).
    pub(super) fn give(&mut self, map: &MemMap, first: u32, order: u8) {
        let class = map.pageblock_class(first);
        let (mut first, mut order) = (first, order);
        while order < MAX_ORDER {
            let (buddy, merged) = buddy_of(first, order);
            let Some(free) = free_at(map, buddy, order) else { break };
            self.unlink(map, buddy, free);
            map.set_tag(first.max(buddy), Tag::new(BlockState::Inside, 0, class));
            (first, order) = (merged, order + 1);
        }
        let end = if merge_likely(map, first, order) { Temperature::Cold } else { Temperature::Hot };
        self.link(map, first, order, class, end);
    }

    /// Takes the first block of a list and puts the part beyond `order` back (`expand`).
    fn take_from(&mut self, map: &MemMap, at: u8, class: Mobility, order: u8) -> Option<u32> {
        let first = self.list(at, class).first(Temperature::Hot)?;
        self.unlink(map, first, Tag::new(BlockState::Buddy, at, class));
        for half in (order..at).rev() {
            self.link(map, first + (1 << half), half, class, Temperature::Hot);
        }
        Some(first)
    }

    /// Takes from another class, from its largest block, to mix as few pageblocks as possible. But a movable request
    /// that may not take the whole pageblock takes from the smallest block.
    fn fall_back(&mut self, map: &MemMap, order: u8, class: Mobility) -> Option<u32> {
        let of_class = |buddy: &Self, at: u8| {
            class.fallbacks().into_iter().find(|other| !buddy.list(at, *other).is_empty()).map(|other| (at, other))
        };
        let (at, other) = (order..=MAX_ORDER).rev().find_map(|at| of_class(self, at))?;
        if at < PAGEBLOCK_ORDER / 2 && class == Mobility::Movable {
            let (at, other) = (order..=MAX_ORDER).find_map(|at| of_class(self, at))?;
            return self.take_from(map, at, other, order);
        }
        let first = self.list(at, other).first(Temperature::Hot)?;
        self.steal(map, first, at, class);
        // The rest of its pageblock may retain its class, but this block now has the new class.
        self.unlink(map, first, map.tag(first));
        self.link(map, first, at, class, Temperature::Hot);
        self.take_from(map, at, class, order)
    }

    /// Moves the free blocks of a block's pageblock to `class`. The label moves too if at least half of the pageblock
    /// is then free or of that class. A block of at least a pageblock moves all its labels.
    fn steal(&mut self, map: &MemMap, first: u32, order: u8, class: Mobility) {
        if order >= PAGEBLOCK_ORDER {
            let blocks = (first..first + (1 << order)).step_by(PAGEBLOCK_FRAMES as usize);
            return blocks.for_each(|frame| map.set_pageblock_class(frame, class));
        }
        let start = first & !(PAGEBLOCK_FRAMES - 1);
        let end = (start + PAGEBLOCK_FRAMES).min(map.len());
        let (mut at, mut good_frames) = (start, 0);
        while at < end {
            let tag = map.tag(at);
            let frames = 1_u32 << tag.order;
            match tag.state {
                BlockState::Inside => {
                    at += 1;
                    continue;
                }
                BlockState::Buddy => {
                    self.unlink(map, at, tag);
                    self.link(map, at, tag.order, class, Temperature::Hot);
                    good_frames += frames;
                }
                BlockState::PerCpu | BlockState::Used => good_frames += if tag.class == class { frames } else { 0 },
            }
            at += frames;
        }
        if good_frames >= PAGEBLOCK_FRAMES / 2 {
            map.set_pageblock_class(first, class);
        }
    }

    fn list(&self, order: u8, class: Mobility) -> &List {
        &self.lists[usize::from(order)][class.index()]
    }

    fn link(&mut self, map: &MemMap, first: u32, order: u8, class: Mobility, end: Temperature) {
        map.set_tag(first, Tag::new(BlockState::Buddy, order, class));
        self.lists[usize::from(order)][class.index()].push(map, first, end);
        self.free_frames += 1 << order;
    }

    fn unlink(&mut self, map: &MemMap, first: u32, tag: Tag) {
        self.lists[usize::from(tag.order)][tag.class.index()].remove(map, first);
        self.free_frames -= 1 << tag.order;
    }
}

/// The tag of the free block of this order at `first`, if there is one (`page_is_buddy`).
fn free_at(map: &MemMap, first: u32, order: u8) -> Option<Tag> {
    let inside = first.checked_add(1 << order).is_some_and(|end| end <= map.len());
    let tag = inside.then(|| map.tag(first))?;
    (tag.state == BlockState::Buddy && tag.order == order).then_some(tag)
}

/// Whether the next larger buddy is free, so that this block is better reserved for merging.
fn merge_likely(map: &MemMap, first: u32, order: u8) -> bool {
    let (_, merged) = buddy_of(first, order);
    let (above, _) = buddy_of(merged, order + 1);
    order + 1 < MAX_ORDER && free_at(map, above, order + 1).is_some()
}
