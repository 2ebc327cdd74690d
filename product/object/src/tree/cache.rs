//! Inodes in memory.
//!
//! Owns: the slots, which of them stay.
//! Does not own: reading inodes (`read`), changing them (`edit`).
//! Invariants: an inode has one slot at a time, and a used slot stays, unless a view forgets all. A filled slot is the
//! state after all batches given to the records. Unused slots are bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::format::tree::InodeRecord;

/// An inode's slot in memory. It is empty until the inode was read.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) ino: u64,
    inode: Mutex<Option<InodeRecord>>,
    xattr_bytes: Mutex<Option<XattrBytes>>,
}

/// The bytes of an object's extended attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct XattrBytes {
    /// Those of the names, each with a zero behind it.
    pub(super) names: usize,
    /// Those of names and values.
    pub(super) all: usize,
}

impl Slot {
    fn new(ino: u64) -> Arc<Self> {
        Arc::new(Self { ino, inode: Mutex::new(None), xattr_bytes: Mutex::new(None) })
    }

    /// The bytes of the attributes, if they were counted.
    pub(super) fn xattr_bytes(&self) -> Option<XattrBytes> {
        *self.xattr_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the count after a batch that was given to the records.
    pub(super) fn set_xattr_bytes(&self, bytes: XattrBytes) {
        *self.xattr_bytes.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }

    /// The attributes change without a new count.
    pub(super) fn forget_xattr_bytes(&self) {
        *self.xattr_bytes.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<InodeRecord>> {
        self.inode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn inode(&self) -> Option<InodeRecord> {
        self.lock().clone()
    }

    /// Takes an inode that was read, unless a change was quicker.
    pub(super) fn learn(&self, inode: InodeRecord) {
        self.lock().get_or_insert(inode);
    }

    /// Takes the inode of a batch that was given to the records.
    pub(super) fn set(&self, inode: InodeRecord) {
        *self.lock() = Some(inode);
    }
}

type Slots = BTreeMap<u64, Arc<Slot>>;

/// Two generations of slots: a slot used since the older one began is in the younger.
#[derive(Debug)]
pub(super) struct SlotCache {
    generations: Mutex<(Slots, Slots)>,
    slots_max: usize,
}

impl SlotCache {
    /// A cache that retains so many unused slots.
    pub(super) fn new(slots_max: usize) -> Self {
        Self { generations: Mutex::default(), slots_max }
    }

    /// The slot of an inode. It stays as long as the caller has it.
    pub(super) fn slot(&self, ino: u64) -> Arc<Slot> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let (young, old) = &mut *generations;
        if let Some(slot) = young.get(&ino) {
            return Arc::clone(slot);
        }
        let slot = old.remove(&ino).unwrap_or_else(|| Slot::new(ino));
        young.insert(ino, Arc::clone(&slot));
        if young.len() >= self.slots_max / 2 {
            // Nobody can come to use a slot while the generations are locked.
            old.retain(|_, slot| Arc::strong_count(slot) > 1);
            let used = std::mem::replace(old, std::mem::take(young));
            young.extend(used);
        }
        slot
    }

    /// Forgets all slots. Those in use learn nothing for later calls.
    pub(super) fn forget(&self) {
        *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }

    /// The number of slots.
    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.0.len() + generations.1.len()
    }
}

#[cfg(test)]
mod tests;
