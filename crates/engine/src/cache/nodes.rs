//! The nodes of all files' indexes.
//!
//! Owns: nodes of 64 slots with their tags, in chunks that are never given back or used for anything
//! else, so that a reader that comes late to a node finds numbers, if wrong ones.
//! Does not own: what the slots mean (`index`).
//! Invariants: slots are written with the owning file's lock held and read by anybody; tags and the
//! occupancy map are read and written with that lock held.

use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Mutex, OwnLines, lock};

/// Slots in a node.
pub(crate) const FANOUT: u64 = 1 << LEVEL_BITS;
/// Bits of a page offset that one level decides.
pub(crate) const LEVEL_BITS: u32 = if cfg!(all(test, loom)) { 1 } else { 6 };
const CHUNK_NODES: usize = if cfg!(all(test, loom)) { 8 } else { 1024 };
const CHUNKS_MAX: usize = if cfg!(all(test, loom)) { 1 } else { 1 << 16 };

/// What a tag marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Tag {
    /// The page, or one below the node, is dirty, and not all of that is being written.
    Dirty = 0,
    /// It was dirty when a sync began and has not been submitted since.
    ToWrite = 1,
    /// It was written and no flush of the device has followed.
    Unflushed = 2,
}

impl Tag {
    pub(crate) const ALL: [Self; 3] = [Self::Dirty, Self::ToWrite, Self::Unflushed];
}

/// The number of tags.
const TAGS: usize = Tag::ALL.len();

/// One node. Slot value 0 is empty, n + 1 is node or frame n.
#[repr(align(64))]
pub(crate) struct Node {
    slots: [AtomicU32; FANOUT as usize],
    occupied: AtomicU64,
    tags: [AtomicU64; TAGS],
}

impl Node {
    fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU32::new(0)),
            occupied: AtomicU64::new(0),
            tags: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[inline]
    pub(crate) fn slot(&self, at: u64) -> Option<u32> {
        self.slots[(at & (FANOUT - 1)) as usize].load(Ordering::Acquire).checked_sub(1)
    }

    pub(crate) fn set_slot(&self, at: u64, value: Option<u32>) {
        let bit = 1 << (at & (FANOUT - 1));
        let occupied = self.occupied.load(Ordering::Relaxed);
        let occupied = if value.is_some() { occupied | bit } else { occupied & !bit };
        self.occupied.store(occupied, Ordering::Relaxed);
        self.slots[(at & (FANOUT - 1)) as usize].store(value.map_or(0, |value| value + 1), Ordering::Release);
    }

    pub(crate) fn occupied(&self) -> u64 {
        self.occupied.load(Ordering::Relaxed)
    }

    pub(crate) fn tags(&self, tag: Tag) -> u64 {
        self.tags[tag as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn has_tag(&self, tag: Tag, at: u64) -> bool {
        self.tags(tag) & (1 << (at & (FANOUT - 1))) != 0
    }

    pub(crate) fn set_tag(&self, tag: Tag, at: u64, on: bool) {
        let bit = 1 << (at & (FANOUT - 1));
        let tags = self.tags(tag);
        self.set_tags(tag, if on { tags | bit } else { tags & !bit });
    }

    pub(crate) fn set_tags(&self, tag: Tag, tags: u64) {
        self.tags[tag as usize].store(tags, Ordering::Relaxed);
    }
}

/// All nodes.
pub(crate) struct Nodes {
    chunks: Box<[OnceLock<Box<[Node; CHUNK_NODES]>>]>,
    /// Apart from what lookups read.
    free: OwnLines<Mutex<FreeNodes>>,
}

struct FreeNodes {
    list: Vec<u32>,
    made: u32,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        Self {
            chunks: (0..CHUNKS_MAX).map(|_| OnceLock::new()).collect(),
            free: OwnLines(Mutex::new(FreeNodes { list: Vec::new(), made: 0 })),
        }
    }

    /// The node with this number, if it was ever made.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Node> {
        let chunk = self.chunks.get(number as usize / CHUNK_NODES)?.get()?;
        Some(&chunk[number as usize % CHUNK_NODES])
    }

    /// A node that the index knows to exist.
    pub(crate) fn node(&self, number: u32) -> &Node {
        self.get(number).unwrap_or_else(|| panic!("index node {number} was never made"))
    }

    /// An empty node.
    ///
    /// # Panics
    /// When 67 million nodes are in use: more pages than an arena can have.
    pub(crate) fn allocate(&self) -> u32 {
        let mut free = lock(&self.free);
        if let Some(number) = free.list.pop() {
            return number;
        }
        let number = free.made;
        let chunk = number as usize / CHUNK_NODES;
        assert!(chunk < CHUNKS_MAX, "out of index nodes");
        self.chunks[chunk].get_or_init(|| {
            let nodes: Box<[Node]> = (0..CHUNK_NODES).map(|_| Node::new()).collect();
            nodes.try_into().unwrap_or_else(|_| unreachable!("as many as were made"))
        });
        free.made += 1;
        number
    }

    /// Takes back a node whose slots and tags are all empty.
    pub(crate) fn free(&self, number: u32) {
        debug_assert_eq!(self.node(number).occupied(), 0);
        lock(&self.free).list.push(number);
    }

    /// Bytes of all nodes ever made.
    pub(crate) fn bytes(&self) -> u64 {
        let made = lock(&self.free).made;
        u64::from(made).next_multiple_of(CHUNK_NODES as u64) * size_of::<Node>() as u64
    }
}
