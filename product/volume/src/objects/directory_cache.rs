//! What is cached of directories: recent lookups, for lookups that ask the host nothing, and pieces of listings.
//!
//! Owns: a fixed number of lookups, and when one does not count any more; which directories have a piece, the number of
//! entries cached, the locks for reading large directories one at a time.
//! Does not own: lookups and listings (`names`), the objects (`table`), which no lookup here keeps alive; the pieces
//! (each is in its directory's inode), the order of entries (`tree::listing`).
//! Invariants: a lookup counts only while its directory's count of changes is the same as before the host was asked. So
//! a change of ours, or a detected one of others, ends all lookups of the directory at once. A lookup does not count
//! while a change of ours is under way, and lives at most for the knob `attributes_idle_centisecs`. Failed lookups are
//! not cached. At most `CACHED_ENTRIES_MAX` entries of listings are cached, for any lists that clients make. The lock
//! here is not held while that of a directory's piece is taken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;
use tokio::sync::Mutex as FairMutex;

use crate::lock::lock;
use crate::objects::inode::Inode;
use crate::tree::attributes::DeviceKey;
use crate::tree::identity::Identity;
use crate::tree::listing::{LARGE_WINDOW_ENTRIES_MAX, Listed};

/// Entries: about 130 bytes each with a usual name. Each name has one slot, and the last entry there stays.
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

/// Most entries cached over all directories: two full windows, some 40 MiB with usual names.
const CACHED_ENTRIES_MAX: usize = 2 * LARGE_WINDOW_ENTRIES_MAX;

/// The directories with a cached piece, the latest last.
struct PieceCache<P: Platform> {
    directories: VecDeque<(Weak<Inode<P>>, usize)>,
    entries: usize,
}

impl<P: Platform> Default for PieceCache<P> {
    fn default() -> Self {
        Self { directories: VecDeque::new(), entries: 0 }
    }
}

pub(crate) struct ListingPieces<P: Platform> {
    cached: Mutex<PieceCache<P>>,
    /// One task of a device at a time reads a large directory, since its entries take memory.
    large: Mutex<BTreeMap<DeviceKey, Arc<FairMutex<()>>>>,
}

impl<P: Platform> Default for ListingPieces<P> {
    fn default() -> Self {
        Self { cached: Mutex::new(PieceCache::default()), large: Mutex::default() }
    }
}

impl<P: Platform> ListingPieces<P> {
    /// To be held while a large directory of this device is read.
    pub(crate) fn large(&self, device: DeviceKey) -> Arc<FairMutex<()>> {
        Arc::clone(lock(&self.large).entry(device).or_default())
    }

    /// Counts a cached piece, and drops the oldest others beyond the bound.
    pub(crate) fn keep(&self, directory: &Arc<Inode<P>>, listed: Listed) {
        let mut cached = lock(&self.cached);
        cached.entries += listed.len();
        cached.directories.push_back((Arc::downgrade(directory), listed.len()));
        let mut dropped = Vec::new();
        while cached.entries > CACHED_ENTRIES_MAX || cached.directories.len() > CACHED_ENTRIES_MAX / 64 {
            let Some((oldest, entries)) = cached.directories.pop_front() else {
                break;
            };
            cached.entries -= entries;
            dropped.extend(oldest.upgrade());
        }
        drop(cached);
        for other in dropped {
            other.listed().drop_cached();
        }
        directory.listed().keep(listed);
    }
}
