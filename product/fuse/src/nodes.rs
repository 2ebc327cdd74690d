//! The objects that the kernel knows, as nodes.
//!
//! Owns: each node's number and count of lookups; the nodes that are too many; whether attributes changed since the
//! last fsync. The size and times that a file had at its last opening. Whether a directory gives its default access
//! control list to new objects, and whether an object has no capabilities for sure.
//! Does not own: objects in memory (the volume), open files (`open_files`), the memory for a later server
//! (`persisted`). Invariants: an object has one node while the kernel knows it. So all names of a file share one inode
//! there. A node holds no descriptor: it is the handle of an object. The root's node is never forgotten. While there
//! are more nodes than usual, two nodes are named to the kernel for each one that is made.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use afflux_volume::{Attributes, FileHandle, Timestamp, handle_hash};

use crate::abi::ROOT;
use crate::limits::{NODES_MAX, NODES_USUAL};
use crate::mount_state::{MountState, MountStateError, PersistedNode};
use crate::slots::{self, NumberedSlots};

/// Identifies the contents of a file: another write gives another stamp.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentStamp {
    size: u64,
    mtime: Timestamp,
    ctime: Timestamp,
}

impl ContentStamp {
    pub(crate) fn of(attributes: &Attributes) -> Self {
        Self { size: attributes.size, mtime: attributes.mtime, ctime: attributes.ctime }
    }
}

struct Node {
    handle: FileHandle,
    lookups: u64,
    /// The last change of its names or attributes. Zero once a sync has covered it.
    unsynced: u32,
    /// The file at its last open, if the kernel caches its bytes.
    opened: Option<Box<ContentStamp>>,
    /// Until then the object has no capabilities: it was made here, and nobody is known to have changed its attributes.
    plain_until_ns: u64,
}

impl Node {
    fn new(handle: FileHandle, lookups: u64) -> Self {
        Self { handle, lookups, unsynced: 0, opened: None, plain_until_ns: 0 }
    }
}

pub(crate) struct KernelNodes {
    slots: NumberedSlots<Node>,
    by_handle: BTreeMap<u64, u64>,
    surplus: Surplus,
    /// Memory for a later server.
    persisted: Option<MountState>,
}

/// Names nodes for the kernel to forget, once there are many.
struct Surplus {
    /// Nodes that are not too many.
    usual: usize,
    /// Nodes that were made since nodes were named last.
    made: usize,
    /// The slot after the node that was named last.
    hand: usize,
}

impl Surplus {
    const NONE: Self = Self { usual: NODES_USUAL, made: 0, hand: 0 };
}

/// Nodes that are named to the kernel at a time: twice as many as were made since.
const NAMED: usize = 64;
/// Most slots that are examined for these. Of all slots, at least one in so many for each named node has a node while
/// there are too many.
const SLOTS_EXAMINED: usize = NAMED * (NODES_MAX / NODES_USUAL);

fn key(handle: &FileHandle) -> u64 {
    handle_hash(handle.as_bytes()).unwrap_or_default()
}

impl KernelNodes {
    /// The root alone.
    pub(crate) fn new(root: FileHandle, most: usize, persisted: Option<MountState>) -> Self {
        let mut nodes =
            Self { slots: NumberedSlots::new(most), by_handle: BTreeMap::new(), surplus: Surplus::NONE, persisted };
        let number = nodes.look_up(root);
        debug_assert_eq!(number, Some(ROOT));
        nodes
    }

    /// The nodes of an earlier server for this root. Its knowledge about their objects is gone.
    pub(crate) fn inherited(root: FileHandle, persisted: MountState) -> Result<Self, MountStateError> {
        let (mut slots, mut by_handle) = (Vec::new(), BTreeMap::new());
        for (slot, (generation, found)) in persisted.nodes()?.into_iter().enumerate() {
            let node = found.map(|PersistedNode { handle, lookups }| {
                by_handle.insert(key(&handle), slots::id(slot, generation));
                // A sync of the earlier server may not have covered everything.
                Node { unsynced: 1, ..Node::new(handle, lookups) }
            });
            slots.push((generation, node));
        }
        let slots = NumberedSlots::restored(slots, persisted.nodes_max());
        match slots.get(ROOT) {
            Some(node) if node.handle == root => {
                Ok(Self { slots, by_handle, surplus: Surplus::NONE, persisted: Some(persisted) })
            }
            _ => Err(MountStateError::OtherRoot),
        }
    }

    /// The node of an object, with one more lookup; none if there are too many nodes.
    pub(crate) fn look_up(&mut self, handle: FileHandle) -> Option<u64> {
        let known = self.by_handle.get(&key(&handle)).copied();
        if let Some((number, node)) = known.and_then(|number| Some((number, self.slots.get_mut(number)?))) {
            node.lookups += 1;
            if let Some(persisted) = &self.persisted {
                persisted.set_lookups(number, node.lookups);
            }
            return Some(number);
        }
        let number = self.slots.insert(Node::new(handle, 1))?;
        self.surplus.made += 1;
        self.by_handle.insert(key(&handle), number);
        if let Some(persisted) = &self.persisted {
            persisted.put_node(number, PersistedNode { handle, lookups: 1 });
        }
        Some(number)
    }

    /// Nodes that the kernel should forget if no program uses them; mostly none. It names all nodes in rotation: the
    /// kernel alone knows which are in use.
    pub(crate) fn surplus(&mut self) -> Vec<u64> {
        if self.surplus.made < NAMED / 2 || self.slots.len() <= self.surplus.usual {
            return Vec::new();
        }
        self.surplus.made = 0;
        let mut named = Vec::new();
        for (slot, id) in self.slots.slots_from(self.surplus.hand, SLOTS_EXAMINED) {
            self.surplus.hand = slot + 1;
            named.extend(id.filter(|it| *it != ROOT));
            if named.len() == NAMED {
                break;
            }
        }
        named
    }

    /// The object of a node.
    pub(crate) fn handle(&self, number: u64) -> Option<FileHandle> {
        self.slots.get(number).map(|node| node.handle)
    }

    /// The node of an object, if the kernel knows it.
    pub(crate) fn known(&self, handle: &FileHandle) -> Option<u64> {
        self.by_handle.get(&key(handle)).copied()
    }

    /// Takes lookups back; the node goes with its last one.
    pub(crate) fn forget(&mut self, number: u64, lookups: u64) {
        if number == ROOT {
            return;
        }
        let Some(node) = self.slots.get_mut(number) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups > 0 {
            self.persisted.iter().for_each(|persisted| persisted.set_lookups(number, node.lookups));
        } else if let Some(node) = self.slots.remove(number) {
            self.by_handle.remove(&key(&node.handle));
            self.persisted.iter().for_each(|persisted| persisted.free_node(number));
        }
    }

    /// Notes that names or attributes of the object changed: its next sync makes them durable.
    pub(crate) fn note_unsynced(&mut self, number: u64) {
        if let Some(node) = self.slots.get_mut(number) {
            node.unsynced = node.unsynced.wrapping_add(1).max(1);
        }
    }

    /// The last change that no sync has covered.
    pub(crate) fn unsynced(&self, number: u64) -> Option<NonZeroU32> {
        NonZeroU32::new(self.slots.get(number)?.unsynced)
    }

    /// A sync that began after this change has succeeded. Later changes need another one.
    pub(crate) fn note_synced(&mut self, number: u64, change: NonZeroU32) {
        if let Some(node) = self.slots.get_mut(number).filter(|node| node.unsynced == change.get()) {
            node.unsynced = 0;
        }
    }

    /// Notes what a file is like as it is opened. Returns what it was like at its last open.
    pub(crate) fn replace_stamp(&mut self, number: u64, stamp: ContentStamp) -> Option<ContentStamp> {
        let node = self.slots.get_mut(number)?;
        match &mut node.opened {
            Some(before) => Some(std::mem::replace(&mut **before, stamp)),
            None => {
                node.opened = Some(Box::new(stamp));
                None
            }
        }
    }

    /// Whether an object has no capabilities for sure.
    pub(crate) fn is_plain(&self, number: u64, now_ns: u64) -> bool {
        self.slots.get(number).is_some_and(|node| now_ns < node.plain_until_ns)
    }

    /// Notes that an object has no capabilities until then.
    pub(crate) fn note_plain(&mut self, number: u64, until_ns: u64) {
        if let Some(node) = self.slots.get_mut(number) {
            node.plain_until_ns = until_ns;
        }
    }

    /// Somebody has changed the attributes of an object, or may have.
    pub(crate) fn note_changed(&mut self, number: u64) {
        if let Some(node) = self.slots.get_mut(number) {
            node.plain_until_ns = 0;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests;
