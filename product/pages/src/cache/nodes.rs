//! The nodes of all files' indexes.
//!
//! Owns: nodes of 64 slots with their tags, twelve in a frame of the cache's memory; the frames that hold nodes. A
//! frame goes back to the arena once none of its nodes is in use.
//! Does not own: the meaning of slots (`index`); the frames for more nodes: the caller that inserts a page supplies
//! them.
//! Invariants: slots are written with the owning file's lock held and read without it; tags and the occupancy map are
//! read and written with that lock held. A free node is empty. A late reader finds numbers in a node, if wrong ones:
//! the arena's memory stays mapped, though it may hold a page's bytes by then. The reader takes as many steps as the
//! tree had levels. The reader then checks the identity of the frame it found, so it notices a wrong frame.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_frames::{FRAME_BYTES, FrameId, Frames};

use crate::memory::copy;
use crate::page::about_to_fill;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, OwnLines, lock, zeros};

/// Slots in a node.
pub(crate) const FANOUT: u64 = 1 << LEVEL_BITS;
/// Levels that 52 bits of page offset need.
pub(crate) const LEVELS_MAX: usize = 52_u32.div_ceil(LEVEL_BITS) as usize;
/// The most nodes that an absent page needs: levels above the tree, and a path down to the page.
const TAKEN_MAX: usize = 2 * LEVELS_MAX;
/// Bits of a page offset that one level decides.
pub(crate) const LEVEL_BITS: u32 = if cfg!(loom) { 1 } else { 6 };
/// Nodes in a frame. Each has cache lines of its own, since writers of different files change them.
const IN_FRAME: usize = if cfg!(loom) { 4 } else { 12 };
/// Low bits of a node's number: its position in its frame.
const IN_FRAME_BITS: u32 = 4;
/// Unused frames reserved for the next nodes: as many as one page may need. So a reader that gets one frame at a time
/// has its nodes after some tries.
const SPARE_FRAMES: usize = TAKEN_MAX.div_ceil(IN_FRAME);

/// A mark of a page in its file's index, by which pages are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Tag {
    /// The page, or one below the node, is dirty, and part of it is not being written.
    Dirty = 0,
    /// The page was dirty when a sync began and has not been submitted since.
    ToWrite = 1,
    /// The page was written, and no flush of the device has followed.
    Unflushed = 2,
    /// The page is dirty, and stays off the device for now.
    Withheld = 3,
}

impl Tag {
    pub(crate) const ALL: [Self; 4] = [Self::Dirty, Self::ToWrite, Self::Unflushed, Self::Withheld];
}

const TAGS: usize = Tag::ALL.len();

/// The part of a node that only the holder of the file's lock reads.
struct Marks {
    occupied: AtomicU64,
    tags: [AtomicU64; TAGS],
}

/// One node's memory. Slot value 0 is empty, n + 1 is node or frame n.
#[repr(C, align(64))]
struct Whole {
    slots: [AtomicU32; FANOUT as usize],
    marks: Marks,
}

struct NodeFrame([Whole; IN_FRAME]);

#[cfg(not(loom))]
const _: () = assert!(size_of::<NodeFrame>() <= FRAME_BYTES && IN_FRAME < 1 << IN_FRAME_BITS);

impl NodeFrame {
    fn empty() -> Self {
        let marks = || Marks { occupied: AtomicU64::new(0), tags: std::array::from_fn(|_| AtomicU64::new(0)) };
        let node = |_| Whole { slots: std::array::from_fn(|_| AtomicU32::new(0)), marks: marks() };
        Self(std::array::from_fn(node))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct IndexNode<'a> {
    slots: &'a [AtomicU32; FANOUT as usize],
    marks: &'a Marks,
}

/// The slot of a page or of a node above it.
#[inline]
fn slot(slots: &[AtomicU32; FANOUT as usize], at: u64) -> Option<u32> {
    slots[(at & (FANOUT - 1)) as usize].load(Ordering::Acquire).checked_sub(1)
}

impl IndexNode<'_> {
    #[inline]
    pub(crate) fn slot(self, at: u64) -> Option<u32> {
        slot(self.slots, at)
    }

    pub(crate) fn set_slot(self, at: u64, value: Option<u32>) {
        let bit = 1 << (at & (FANOUT - 1));
        let occupied = self.occupied();
        let occupied = if value.is_some() { occupied | bit } else { occupied & !bit };
        self.marks.occupied.store(occupied, Ordering::Relaxed);
        self.slots[(at & (FANOUT - 1)) as usize].store(value.map_or(0, |value| value + 1), Ordering::Release);
    }

    pub(crate) fn occupied(self) -> u64 {
        self.marks.occupied.load(Ordering::Relaxed)
    }

    pub(crate) fn tags(self, tag: Tag) -> u64 {
        self.marks.tags[tag as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn has_tag(self, tag: Tag, at: u64) -> bool {
        self.tags(tag) & (1 << (at & (FANOUT - 1))) != 0
    }

    pub(crate) fn set_tag(self, tag: Tag, at: u64, on: bool) {
        let bit = 1 << (at & (FANOUT - 1));
        let tags = self.tags(tag);
        self.set_tags(tag, if on { tags | bit } else { tags & !bit });
    }

    pub(crate) fn set_tags(self, tag: Tag, tags: u64) {
        self.marks.tags[tag as usize].store(tags, Ordering::Relaxed);
    }
}

/// All nodes. A node's number is its frame's position in the table, above its own position in the frame.
pub struct Nodes {
    /// The address of each frame of nodes; null where there is none.
    table: Box<[AtomicPtr<NodeFrame>]>,
    /// On cache lines of its own, apart from the data that lookups read.
    state: OwnLines<Mutex<NodesState>>,
    /// The source of the frames. In a stamped arena the frames are only counted, and the nodes stand in heap memory.
    arena: Option<Arc<Frames>>,
}

#[derive(Default)]
struct NodesState {
    /// By position in the table, up to the highest position ever used.
    held: Vec<FrameUse>,
    /// Positions without a frame.
    vacant: Vec<u32>,
    /// Positions with a free node. The lowest are used first, so that the others become empty.
    partial: BTreeSet<u32>,
    free: usize,
    in_use: usize,
    /// Positions of frames without a node in use.
    unused: BTreeSet<u32>,
}

#[derive(Clone, Copy, Default)]
struct FrameUse {
    frame: Option<FrameId>,
    /// A bit for each free node.
    free: u16,
}

/// All nodes of a frame are free.
const ALL_FREE: u16 = (1 << IN_FRAME) - 1;

impl Nodes {
    pub(crate) fn new(arena: Arc<Frames>) -> Self {
        Self::with(arena.total() as usize, Some(arena))
    }

    fn with(places: usize, arena: Option<Arc<Frames>>) -> Self {
        Self { table: zeros(places), state: OwnLines(Mutex::new(NodesState::default())), arena }
    }

    /// Nodes without an arena: frames are made as they are needed.
    #[cfg(test)]
    pub(crate) fn on_heap(places: usize) -> Self {
        Self::with(places, None)
    }

    /// Puts a page's bytes in this node's slots, as after its frame went back to the arena.
    #[cfg(test)]
    pub(crate) fn scribble(&self, number: u32, value: impl Fn(usize) -> u32) {
        for (at, slot) in self.node(number).slots.iter().enumerate() {
            slot.store(value(at), Ordering::Relaxed);
        }
    }

    /// A slot of a node, read without the lock. By now the memory may hold another node, or a page's bytes.
    #[inline]
    pub(crate) fn read_unlocked(&self, number: u32, at: u64) -> Option<u32> {
        let held = self.table.get((number >> IN_FRAME_BITS) as usize)?.load(Ordering::Acquire);
        // SAFETY: the table names frames of the arena, which lives as long as this table, or heap memory that is freed
        // with it. The bytes are read as atomic numbers. Writers store atomic numbers, or use the routine that
        // tolerates readers; a device may write the bytes, too.
        let held = unsafe { held.as_ref() }?;
        slot(&held.0.get((number & ((1 << IN_FRAME_BITS) - 1)) as usize)?.slots, at)
    }

    /// A node of the index, with the file's lock held.
    #[inline]
    pub(crate) fn node(&self, number: u32) -> IndexNode<'_> {
        let in_frame = (number & ((1 << IN_FRAME_BITS) - 1)) as usize;
        let held = self.table[(number >> IN_FRAME_BITS) as usize].load(Ordering::Acquire);
        // SAFETY: as in `read_unlocked`. The frame holds nodes, since one of them is in use.
        let held = unsafe { held.as_ref() }.unwrap_or_else(|| panic!("index node {number} is in no frame"));
        let Whole { slots, marks } = &held.0[in_frame];
        IndexNode { slots, marks }
    }

    /// Takes `count` empty nodes, or none: `more` supplies frames if there are too few. A supplied frame stays for the
    /// next caller.
    pub(crate) fn take(&self, count: usize, mut more: impl FnMut() -> Option<FrameId>) -> Option<ReservedNodes<'_>> {
        let mut taken = ReservedNodes { nodes: self, numbers: [0; TAKEN_MAX], len: 0 };
        if count == 0 {
            return Some(taken);
        }
        let mut state = lock(&self.state);
        while state.free < count {
            let frame = if self.arena.is_some() { Some(more()?) } else { None };
            self.hold(&mut state, frame);
        }
        for number in &mut taken.numbers[..count] {
            *number = state.take();
        }
        taken.len = count;
        Some(taken)
    }

    /// One more frame holds nodes, all of them free.
    fn hold(&self, state: &mut NodesState, frame: Option<FrameId>) {
        let place = state.vacant.pop().unwrap_or_else(|| {
            state.held.push(FrameUse::default());
            (state.held.len() - 1) as u32
        });
        let slot = &self.table[place as usize];
        let whole = self.arena.as_ref().zip(frame).filter(|(arena, _)| arena.backed_bytes() == FRAME_BYTES);
        if let Some((arena, frame)) = whole {
            let address = arena.whole_address(frame);
            // A late reader of the frame's last page compares its reuses after the copy.
            about_to_fill();
            // SAFETY: the frame was handed out to the caller and is whole. Late readers of its last page copy by the
            // same routine; late readers of its nodes read atomic numbers.
            unsafe { copy::zero_bytes(address, FRAME_BYTES) };
            slot.store(address.cast(), Ordering::Release);
        } else if slot.load(Ordering::Relaxed).is_null() {
            slot.store(Box::into_raw(Box::new(NodeFrame::empty())), Ordering::Release);
        }
        state.held[place as usize] = FrameUse { frame, free: ALL_FREE };
        state.partial.insert(place);
        state.unused.insert(place);
        state.free += IN_FRAME;
    }

    /// Takes back a node whose slots and tags are all empty. With the last node all frames go back.
    pub(crate) fn free(&self, number: u32) {
        debug_assert_eq!(self.node(number).occupied(), 0);
        let mut state = lock(&self.state);
        state.put_back(number);
        let spare = if state.in_use > 0 { SPARE_FRAMES } else { 0 };
        self.give_back(&mut state, spare);
    }

    /// Takes back a node that was reserved and not used. The caller may lack a frame for its page, and try again.
    fn free_reserved(&self, number: u32) {
        let mut state = lock(&self.state);
        state.put_back(number);
        self.give_back(&mut state, SPARE_FRAMES);
    }

    /// Gives unused frames back to the arena.
    pub fn give_back_unused(&self) {
        self.give_back(&mut lock(&self.state), 0);
    }

    fn give_back(&self, state: &mut NodesState, spare: usize) {
        while state.unused.len() > spare {
            self.free_last_unused(state);
        }
    }

    /// Gives the last unused frame back to the arena.
    fn free_last_unused(&self, state: &mut NodesState) {
        let Some(place) = state.unused.pop_last() else { return };
        state.partial.remove(&place);
        state.free -= IN_FRAME;
        state.vacant.push(place);
        let FrameUse { frame, .. } = std::mem::take(&mut state.held[place as usize]);
        if let (Some(arena), Some(frame)) = (&self.arena, frame) {
            if arena.backed_bytes() == FRAME_BYTES {
                self.table[place as usize].store(std::ptr::null_mut(), Ordering::Release);
            }
            arena.free(frame);
        }
    }

    /// Frames of the arena that hold nodes.
    pub(crate) fn frames(&self) -> u64 {
        let state = lock(&self.state);
        (state.held.len() - state.vacant.len()) as u64
    }

    /// Nodes in an index, or taken for one.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        lock(&self.state).in_use
    }

    /// Bytes outside the arena.
    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&*self.table) as u64
    }
}

impl Drop for Nodes {
    /// Frees heap memory, which only this table owns. No reader remains.
    fn drop(&mut self) {
        if self.arena.as_ref().is_some_and(|arena| arena.backed_bytes() == FRAME_BYTES) {
            return;
        }
        for slot in &self.table {
            let held = slot.load(Ordering::Relaxed);
            if !held.is_null() {
                // SAFETY: a box made this memory, and nobody else frees it.
                drop(unsafe { Box::from_raw(held) });
            }
        }
    }
}

/// Nodes taken for a page and not in an index yet. Unused ones go back on drop.
pub struct ReservedNodes<'a> {
    nodes: &'a Nodes,
    numbers: [u32; TAKEN_MAX],
    len: usize,
}

impl ReservedNodes<'_> {
    /// The next of the taken nodes.
    ///
    /// # Panics
    /// If no node remains: the caller counted wrong.
    pub(crate) fn next(&mut self) -> u32 {
        self.len -= 1;
        self.numbers[self.len]
    }
}

impl Drop for ReservedNodes<'_> {
    fn drop(&mut self) {
        while self.len > 0 {
            let number = self.next();
            self.nodes.free_reserved(number);
        }
    }
}

impl NodesState {
    fn take(&mut self) -> u32 {
        let place = *self.partial.first().unwrap_or_else(|| unreachable!("as many are free as are counted"));
        let held = &mut self.held[place as usize];
        if held.free == ALL_FREE {
            self.unused.remove(&place);
        }
        let at = held.free.trailing_zeros();
        held.free &= held.free - 1;
        if held.free == 0 {
            self.partial.remove(&place);
        }
        self.free -= 1;
        self.in_use += 1;
        place << IN_FRAME_BITS | at
    }

    fn put_back(&mut self, number: u32) {
        let (place, bit) = (number >> IN_FRAME_BITS, 1 << (number & ((1 << IN_FRAME_BITS) - 1)));
        let held = &mut self.held[place as usize];
        assert!(held.free & bit == 0, "index node {number} is freed twice");
        if held.free == 0 {
            self.partial.insert(place);
        }
        held.free |= bit;
        if held.free == ALL_FREE {
            self.unused.insert(place);
        }
        self.free += 1;
        self.in_use -= 1;
    }
}
