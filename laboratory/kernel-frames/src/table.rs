//! One word a frame: the frame's place, and the neighbours in its list.
//!
//! Owns: the packing, lists linked by frame numbers, the walk along a list.
//! Does not own: the list in which a frame belongs; the locks: each list has its owner's.
//! Invariants: 8 bytes a frame and no pointers. A block's first frame has the block's place and order; the frames after
//! it are `Inside`. The links of a frame are those of its list.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Mobility;

/// The link at either end of a list.
pub(crate) const NIL: u32 = (1 << 28) - 1;

/// The place of the block that starts at a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Place {
    /// No block starts here.
    Inside = 0,
    /// In a buddy list.
    Buddy = 1,
    /// In a per-CPU list.
    PerCpu = 2,
    /// Handed out.
    Used = 3,
}

/// The parts of a frame's word besides the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub(crate) place: Place,
    pub(crate) order: u8,
    pub(crate) class: Mobility,
}

impl Tag {
    pub(crate) const fn new(place: Place, order: u8, class: Mobility) -> Self {
        Self { place, order, class }
    }

    fn pack(self) -> u64 {
        self.place as u64 | u64::from(self.order) << 2 | (self.class as u64) << 6
    }

    fn unpack(word: u64) -> Self {
        let place = match word & 3 {
            0 => Place::Inside,
            1 => Place::Buddy,
            2 => Place::PerCpu,
            _ => Place::Used,
        };
        Self { place, order: (word >> 2 & 15) as u8, class: Mobility::from_bits((word >> 6 & 3) as u8) }
    }
}

/// A word a frame. Relaxed: a frame's word is written under the lock of its list, or by its holder. A reader of
/// another's word sees a place that cannot be its own.
pub(crate) struct FrameTable(Box<[AtomicU64]>);

const TAG_BITS: u32 = 8;
const LINK_BITS: u32 = 28;
const LINK: u64 = NIL as u64;

impl FrameTable {
    pub(crate) fn new(frames: u32) -> Self {
        Self((0..frames).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn tag(&self, frame: u32) -> Tag {
        Tag::unpack(self.0[frame as usize].load(Ordering::Relaxed))
    }

    pub(crate) fn set_tag(&self, frame: u32, tag: Tag) {
        let word = &self.0[frame as usize];
        let links = word.load(Ordering::Relaxed) >> TAG_BITS << TAG_BITS;
        word.store(links | tag.pack(), Ordering::Relaxed);
    }

    fn next(&self, frame: u32) -> u32 {
        (self.0[frame as usize].load(Ordering::Relaxed) >> TAG_BITS & LINK) as u32
    }

    fn previous(&self, frame: u32) -> u32 {
        (self.0[frame as usize].load(Ordering::Relaxed) >> (TAG_BITS + LINK_BITS)) as u32
    }

    fn set_next(&self, frame: u32, next: u32) {
        self.set_bits(frame, TAG_BITS, next);
    }

    fn set_previous(&self, frame: u32, previous: u32) {
        self.set_bits(frame, TAG_BITS + LINK_BITS, previous);
    }

    fn set_bits(&self, frame: u32, shift: u32, link: u32) {
        let word = &self.0[frame as usize];
        let rest = word.load(Ordering::Relaxed) & !(LINK << shift);
        word.store(rest | u64::from(link) << shift, Ordering::Relaxed);
    }
}

/// A list of blocks, by their first frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL, len: 0 };

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn head(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    pub(crate) fn push_head(&mut self, table: &FrameTable, frame: u32) {
        table.set_next(frame, self.head);
        table.set_previous(frame, NIL);
        match self.head {
            NIL => self.tail = frame,
            old => table.set_previous(old, frame),
        }
        self.head = frame;
        self.len += 1;
    }

    pub(crate) fn push_tail(&mut self, table: &FrameTable, frame: u32) {
        table.set_next(frame, NIL);
        table.set_previous(frame, self.tail);
        match self.tail {
            NIL => self.head = frame,
            old => table.set_next(old, frame),
        }
        self.tail = frame;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, table: &FrameTable, frame: u32) {
        let (previous, next) = (table.previous(frame), table.next(frame));
        match previous {
            NIL => self.head = next,
            _ => table.set_next(previous, next),
        }
        match next {
            NIL => self.tail = previous,
            _ => table.set_previous(next, previous),
        }
        self.len -= 1;
    }

    pub(crate) fn pop_head(&mut self, table: &FrameTable) -> Option<u32> {
        let frame = self.head()?;
        self.remove(table, frame);
        Some(frame)
    }

    pub(crate) fn pop_tail(&mut self, table: &FrameTable) -> Option<u32> {
        let frame = (self.tail != NIL).then_some(self.tail)?;
        self.remove(table, frame);
        Some(frame)
    }

    /// The first block from that end with a fitting class, and the number of blocks examined.
    pub(crate) fn search(&self, table: &FrameTable, from: End, class: Mobility) -> (Option<u32>, u64) {
        let mut searched = 0;
        let mut at = if from == End::Head { self.head } else { self.tail };
        while at != NIL {
            searched += 1;
            if table.tag(at).class == class {
                return (Some(at), searched);
            }
            at = if from == End::Head { table.next(at) } else { table.previous(at) };
        }
        (None, searched)
    }
}

/// An end of a list: the head has the block used last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Head,
    Tail,
}
