//! The frames of a zone: their states, and lists linked through them (`struct page`, `struct list_head`).
//!
//! Owns: a record for each frame, the class of each pageblock, lists by frame numbers.
//! Does not own: the list in which a frame belongs; the locks: each list has its owner's.
//! Invariants: a block's first frame has the block's state and order; the frames after it are `Inside`.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use super::block::PAGEBLOCK_ORDER;
use super::{Mobility, Temperature};

/// The link at either end of a list.
pub(super) const NIL: u32 = u32::MAX;

/// The state of the block that starts at a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BlockState {
    /// No block starts here.
    Inside,
    /// In a buddy list.
    Buddy,
    /// In a per-CPU list.
    PerCpu,
    /// Handed out.
    Used,
}

/// The state of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tag {
    pub(super) state: BlockState,
    pub(super) order: u8,
    pub(super) class: Mobility,
}

impl Tag {
    pub(super) const fn new(state: BlockState, order: u8, class: Mobility) -> Self {
        Self { state, order, class }
    }
}

#[derive(Default)]
struct Page {
    next: AtomicU32,
    previous: AtomicU32,
    /// State, order and class, a byte each.
    tag: AtomicU32,
}

/// The frames. Accesses are relaxed: a record is written under the lock of its list, or by the frame's owner. Others
/// read a state there that cannot be their own frame's.
pub(super) struct MemMap {
    pages: Box<[Page]>,
    /// Read without the lock when a frame is freed to a per-CPU list.
    pageblocks: Box<[AtomicU8]>,
}

impl MemMap {
    pub(super) fn new(frames: u32) -> Self {
        let pageblocks = frames.div_ceil(1 << PAGEBLOCK_ORDER);
        Self {
            pages: (0..frames).map(|_| Page::default()).collect(),
            pageblocks: (0..pageblocks).map(|_| AtomicU8::new(Mobility::Movable as u8)).collect(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    pub(super) fn tag(&self, frame: u32) -> Tag {
        let [state, order, class, _] = self.pages[frame as usize].tag.load(Relaxed).to_le_bytes();
        let state =
            [BlockState::Inside, BlockState::Buddy, BlockState::PerCpu, BlockState::Used][usize::from(state & 3)];
        Tag { state, order, class: class_of(class) }
    }

    pub(super) fn set_tag(&self, frame: u32, tag: Tag) {
        let bytes = [tag.state as u8, tag.order, tag.class as u8, 0];
        self.pages[frame as usize].tag.store(u32::from_le_bytes(bytes), Relaxed);
    }

    /// `get_pageblock_migratetype`.
    pub(super) fn pageblock_class(&self, frame: u32) -> Mobility {
        class_of(self.pageblocks[(frame >> PAGEBLOCK_ORDER) as usize].load(Relaxed))
    }

    /// `set_pageblock_migratetype`.
    pub(super) fn set_pageblock_class(&self, frame: u32, class: Mobility) {
        self.pageblocks[(frame >> PAGEBLOCK_ORDER) as usize].store(class as u8, Relaxed);
    }

    fn page(&self, frame: u32) -> &Page {
        &self.pages[frame as usize]
    }

    fn link(&self, previous: u32, next: u32, list: &mut List) {
        match previous {
            NIL => list.head = next,
            _ => self.page(previous).next.store(next, Relaxed),
        }
        match next {
            NIL => list.tail = previous,
            _ => self.page(next).previous.store(previous, Relaxed),
        }
    }
}

const fn class_of(byte: u8) -> Mobility {
    Mobility::ALL[byte as usize % Mobility::COUNT]
}

/// A list of blocks, by their first frames. Hot blocks are at its head, cold ones at its tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
    pub(super) len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: NIL, tail: NIL, len: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn first(&self, end: Temperature) -> Option<u32> {
        let frame = if end == Temperature::Hot { self.head } else { self.tail };
        (frame != NIL).then_some(frame)
    }

    pub(super) fn push(&mut self, map: &MemMap, frame: u32, end: Temperature) {
        let (previous, next) = if end == Temperature::Hot { (NIL, self.head) } else { (self.tail, NIL) };
        map.page(frame).previous.store(previous, Relaxed);
        map.page(frame).next.store(next, Relaxed);
        map.link(previous, frame, self);
        map.link(frame, next, self);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, map: &MemMap, frame: u32) {
        let page = map.page(frame);
        map.link(page.previous.load(Relaxed), page.next.load(Relaxed), self);
        self.len -= 1;
    }

    pub(super) fn pop(&mut self, map: &MemMap, end: Temperature) -> Option<u32> {
        let frame = self.first(end)?;
        self.remove(map, frame);
        Some(frame)
    }

    /// The first block from that end with a fitting class, and the number of blocks examined.
    pub(super) fn search(&self, map: &MemMap, end: Temperature, class: Mobility) -> (Option<u32>, u64) {
        let (mut at, mut searched) = (self.first(end), 0);
        while let Some(frame) = at {
            searched += 1;
            if map.tag(frame).class == class {
                break;
            }
            let page = map.page(frame);
            let next = if end == Temperature::Hot { &page.next } else { &page.previous };
            at = Some(next.load(Relaxed)).filter(|frame| *frame != NIL);
        }
        (at, searched)
    }
}
