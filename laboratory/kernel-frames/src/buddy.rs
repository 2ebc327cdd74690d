//! Buddy lists by order and mobility class, with pageblocks that keep like with like.
//!
//! Owns: the free blocks of a zone, the class of each 2 MiB pageblock, splitting, merging, fallback.
//! Does not own: the lock (the zone's), the per-CPU lists, watermarks.
//! Invariants: below order 10, two free buddies of one order are never adjacent. A free block is in the list of the
//! class that its pageblock had at the time of the free. `free_frames` is the sum of the lists.
//!
//! A free block's tag records the class of its list. So the block is found there even after its pageblock has got
//! another class.

use crate::counters::ZoneCounters;
use crate::table::{End, FrameTable, List, Place, Tag};
use crate::{Mobility, Order};

#[cfg(test)]
mod tests;

const ORDERS: usize = Order::MAX as usize + 1;
const PAGEBLOCK_ORDER: u8 = Order::PAGEBLOCK.get();
const PAGEBLOCK_FRAMES: u32 = Order::PAGEBLOCK.frames();

/// The free blocks of one zone.
pub(crate) struct Buddy {
    lists: [[List; Mobility::COUNT]; ORDERS],
    free_frames: u32,
}

/// The class of each pageblock. Read without the lock when a frame is freed to a per-CPU list.
pub(crate) struct Pageblocks(Box<[std::sync::atomic::AtomicU8]>);

impl Pageblocks {
    pub(crate) fn new(frames: u32) -> Self {
        let movable = || std::sync::atomic::AtomicU8::new(Mobility::Movable as u8);
        Self((0..frames.div_ceil(PAGEBLOCK_FRAMES)).map(|_| movable()).collect())
    }

    pub(crate) fn class(&self, frame: u32) -> Mobility {
        let block = &self.0[(frame >> PAGEBLOCK_ORDER) as usize];
        Mobility::from_bits(block.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn set_class(&self, frame: u32, class: Mobility) {
        self.0[(frame >> PAGEBLOCK_ORDER) as usize].store(class as u8, std::sync::atomic::Ordering::Relaxed);
    }
}

/// The tables that the buddy lists work on.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) table: &'a FrameTable,
    pub(crate) pageblocks: &'a Pageblocks,
}

/// The buddy of a block, and the first frame of the two merged.
pub(crate) const fn buddy_of(first: u32, order: u8) -> (u32, u32) {
    let buddy = first ^ (1 << order);
    (buddy, first & buddy)
}

impl Buddy {
    /// All frames of the table, free, in the largest blocks that fit.
    pub(crate) fn new(ground: Ground<'_>) -> Self {
        let mut buddy = Self { lists: [[List::EMPTY; Mobility::COUNT]; ORDERS], free_frames: 0 };
        let mut first = 0;
        while first < ground.table.len() {
            let fits = (ground.table.len() - first).ilog2().min(u32::from(Order::MAX));
            let order = first.trailing_zeros().min(fits) as u8;
            buddy.link(ground, first, order, Mobility::Movable, End::Tail);
            first += 1 << order;
        }
        buddy
    }

    pub(crate) fn free_frames(&self) -> u32 {
        self.free_frames
    }

    /// The number of blocks of each class in the lists of this order.
    pub(crate) fn blocks(&self, order: u8) -> [u32; Mobility::COUNT] {
        self.lists[usize::from(order)].map(|list| list.len())
    }

    /// Takes a block. A larger block is split; as a last resort, another class gives a block.
    pub(crate) fn take(
        &mut self,
        ground: Ground<'_>,
        order: u8,
        class: Mobility,
        counters: &mut ZoneCounters,
    ) -> Option<u32> {
        let found = (order..=Order::MAX).find(|at| !self.list(*at, class).is_empty());
        let first = match found {
            Some(at) => self.take_from(ground, at, class, order, class, counters)?,
            None => self.fall_back(ground, order, class, counters)?,
        };
        ground.table.set_tag(first, Tag::new(Place::Used, order, class));
        Some(first)
    }

    /// Gives a block back and merges it as long as its buddy is free.
    pub(crate) fn give(&mut self, ground: Ground<'_>, first: u32, order: u8, counters: &mut ZoneCounters) {
        let class = ground.pageblocks.class(first);
        let (mut first, mut order) = (first, order);
        while order < Order::MAX {
            let (buddy, merged) = buddy_of(first, order);
            let Some(free) = self.free_at(ground, buddy, order) else { break };
            self.unlink(ground, buddy, free);
            ground.table.set_tag(first.max(buddy), Tag::new(Place::Inside, 0, class));
            counters.merges += 1;
            (first, order) = (merged, order + 1);
        }
        let end = if self.merge_likely(ground, first, order) { End::Tail } else { End::Head };
        self.link(ground, first, order, class, end);
    }

    /// The tag of the free block of this order at `first`, if there is one.
    fn free_at(&self, ground: Ground<'_>, first: u32, order: u8) -> Option<Tag> {
        let inside = first.checked_add(1 << order).is_some_and(|end| end <= ground.table.len());
        let tag = inside.then(|| ground.table.tag(first))?;
        (tag.place == Place::Buddy && tag.order == order).then_some(tag)
    }

    /// Whether the next larger buddy is free, so that this block is better kept for merging.
    fn merge_likely(&self, ground: Ground<'_>, first: u32, order: u8) -> bool {
        order + 1 < Order::MAX && {
            let (_, merged) = buddy_of(first, order);
            let (above, _) = buddy_of(merged, order + 1);
            self.free_at(ground, above, order + 1).is_some()
        }
    }

    /// Takes the first block of a list and puts the part beyond `order` back, in `new_class`.
    fn take_from(
        &mut self,
        ground: Ground<'_>,
        at: u8,
        class: Mobility,
        order: u8,
        new_class: Mobility,
        counters: &mut ZoneCounters,
    ) -> Option<u32> {
        let first = self.list(at, class).head()?;
        self.unlink(ground, first, Tag::new(Place::Buddy, at, class));
        for half in (order..at).rev() {
            self.link(ground, first + (1 << half), half, new_class, End::Head);
            counters.splits += 1;
        }
        Some(first)
    }

    /// Takes from another class, from its largest block, to mix as few pageblocks as possible. But a movable request
    /// that may not take the whole pageblock takes from the smallest block.
    fn fall_back(
        &mut self,
        ground: Ground<'_>,
        order: u8,
        class: Mobility,
        counters: &mut ZoneCounters,
    ) -> Option<u32> {
        let of_class = |buddy: &Self, at: u8| {
            class.fallbacks().into_iter().find(|other| !buddy.list(at, *other).is_empty()).map(|other| (at, other))
        };
        let (at, other) = (order..=Order::MAX).rev().find_map(|at| of_class(self, at))?;
        counters.fallbacks += 1;
        if !may_steal(at, class) {
            let (at, other) = (order..=Order::MAX).find_map(|at| of_class(self, at))?;
            return self.take_from(ground, at, other, order, other, counters);
        }
        let first = self.list(at, other).head()?;
        self.steal(ground, first, at, class, counters);
        // The rest of its pageblock may keep its class, but this block now has the new class.
        self.unlink(ground, first, ground.table.tag(first));
        self.link(ground, first, at, class, End::Head);
        self.take_from(ground, at, class, order, class, counters)
    }

    /// Moves the free blocks of a block's pageblock to `class`. The label moves too if at least half of the pageblock
    /// is then free or of that class. A block of at least a pageblock moves all its labels.
    fn steal(&mut self, ground: Ground<'_>, first: u32, order: u8, class: Mobility, counters: &mut ZoneCounters) {
        counters.steals += 1;
        if order >= PAGEBLOCK_ORDER {
            for frame in (first..first + (1 << order)).step_by(PAGEBLOCK_FRAMES as usize) {
                ground.pageblocks.set_class(frame, class);
            }
            return;
        }
        let start = first & !(PAGEBLOCK_FRAMES - 1);
        let end = (start + PAGEBLOCK_FRAMES).min(ground.table.len());
        let (mut at, mut good_frames) = (start, 0);
        while at < end {
            let tag = ground.table.tag(at);
            let frames = 1_u32 << tag.order;
            match tag.place {
                Place::Inside => {
                    at += 1;
                    continue;
                }
                Place::Buddy => {
                    self.unlink(ground, at, tag);
                    self.link(ground, at, tag.order, class, End::Head);
                    good_frames += frames;
                }
                Place::PerCpu | Place::Used => good_frames += if tag.class == class { frames } else { 0 },
            }
            at += frames;
        }
        if good_frames >= PAGEBLOCK_FRAMES / 2 {
            ground.pageblocks.set_class(first, class);
        }
    }

    fn list(&self, order: u8, class: Mobility) -> &List {
        &self.lists[usize::from(order)][class.index()]
    }

    fn link(&mut self, ground: Ground<'_>, first: u32, order: u8, class: Mobility, end: End) {
        ground.table.set_tag(first, Tag::new(Place::Buddy, order, class));
        let list = &mut self.lists[usize::from(order)][class.index()];
        match end {
            End::Head => list.push_head(ground.table, first),
            End::Tail => list.push_tail(ground.table, first),
        }
        self.free_frames += 1 << order;
    }

    fn unlink(&mut self, ground: Ground<'_>, first: u32, tag: Tag) {
        self.lists[usize::from(tag.order)][tag.class.index()].remove(ground.table, first);
        self.free_frames -= 1 << tag.order;
    }
}

/// Whether a request of this class may take the whole pageblock of a block of this order.
const fn may_steal(order: u8, class: Mobility) -> bool {
    order >= PAGEBLOCK_ORDER / 2 || !matches!(class, Mobility::Movable)
}
