//! The pieces of directories that are cached between calls that list them.
//!
//! Owns: which directories have a piece, the number of entries cached, the turns for reading large directories.
//! Does not own: the pieces (each is in its directory's inode), the order of entries (`tree::window`).
//! Invariants: at most `CACHED_ENTRIES_MAX` entries are cached, for any lists that clients make. The lock here is not
//! held while that of a directory's piece is taken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use afflux_engine::Platform;
use tokio::sync::Mutex as FairMutex;

use super::inode::Inode;
use crate::lock::lock;
use crate::tree::listed::Listed;
use crate::tree::stat::DeviceKey;
use crate::tree::window::LARGE_WINDOW_ENTRIES_MAX;

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

    /// Keeps a piece, and drops the oldest others beyond the bound.
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
