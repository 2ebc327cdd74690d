//! Recent results of lookups, for lookups that ask the host nothing.
//!
//! Owns: a fixed number of entries, and when one does not count any more.
//! Does not own: lookups (`names::lookup`), the objects (`table`); an entry keeps neither alive.
//! Invariants: an entry counts only while its directory's count of changes is the same as before the host was asked. So
//! a change of ours, or a detected one of others, ends all entries of the directory at once. An entry does not count
//! while a change of ours is under way, and lives at most for the knob `attributes_idle_centisecs`. Failed lookups are
//! not kept.

use std::sync::{Arc, Mutex, Weak};

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;

use crate::lock::lock;
use crate::objects::inode::Inode;
use crate::tree::identity::Identity;

/// Entries: about 130 bytes each with a usual name. Each name has one place, and the last entry there stays.
const NAMES_MAX: usize = 4096;
const _: () = assert!(NAMES_MAX.is_power_of_two());

struct NameCacheEntry<P: Platform> {
    /// Weak: an inode that was dropped and found again does not count.
    directory: Weak<Inode<P>>,
    name: Bytes,
    object: Identity,
    /// The directory's count of changes before the host was asked.
    changes: u64,
    asked: Nanos,
}

pub(crate) struct NameCache<P: Platform>(Box<[Mutex<Option<NameCacheEntry<P>>>]>);

impl<P: Platform> NameCache<P> {
    pub(crate) fn new() -> Self {
        Self((0..NAMES_MAX).map(|_| Mutex::new(None)).collect())
    }

    fn slot(&self, directory: &Inode<P>, name: &[u8]) -> &Mutex<Option<NameCacheEntry<P>>> {
        let mixed = name
            .iter()
            .fold(directory.identity.mixed(), |mixed, byte| (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        let spread = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(spread >> 32) as usize % NAMES_MAX]
    }

    /// Stores the host's answer. `changes` and `asked` are from before the host was asked.
    pub(crate) fn keep(&self, directory: &Arc<Inode<P>>, name: Bytes, object: Identity, changes: u64, asked: Nanos) {
        let slot = self.slot(directory, &name);
        let entry = NameCacheEntry { directory: Arc::downgrade(directory), name, object, changes, asked };
        // The old entry is dropped outside the lock.
        drop(lock(slot).replace(entry));
    }

    /// The object of the name, if it was looked up less than `idle_ns` ago and the entry still counts.
    pub(crate) fn get(&self, directory: &Arc<Inode<P>>, name: &[u8], now: Nanos, idle_ns: u64) -> Option<Identity> {
        let slot = lock(self.slot(directory, name));
        let entry = slot.as_ref()?;
        let here = entry.directory.as_ptr() == Arc::as_ptr(directory) && *entry.name == *name;
        let counts = entry.changes == directory.changes_seen() && now.since(entry.asked) < idle_ns;
        // While a change of ours is under way, only the host knows which names are new already.
        (here && counts && directory.changing.try_lock().is_some()).then_some(entry.object)
    }
}
