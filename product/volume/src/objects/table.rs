//! The inodes in memory: one for each host object, found by identity, dropped when idle.
//!
//! Owns: the sharded map, the count against the descriptors that may be held, the pause after a search in vain.
//! Does not own: finding objects outside it (`handles`), making dirty ones clean.
//! Invariants: an identity has at most one inode that can be found. An inode is dropped only if it has no other holder
//! and all of its state is on the host.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::Platform;

use crate::objects::inode::{DESCRIPTORS_OF_FILE, Inode, InodeSums};
use crate::tree::attributes::DeviceKey;
use crate::tree::identity::{Identity, IdentityMap};

const SHARDS: usize = 64;
const _: () = assert!(SHARDS.is_power_of_two());

/// One descriptor of so many is for objects that are not open.
const UNOPENED_PART: usize = 64;

/// Most inodes for any descriptor limit: about 0.8 KiB each.
const INODES_MAX: usize = 65_536;
/// Fewest descriptors, so that deep trees and many clients still work with a tiny limit.
const DESCRIPTORS_MIN: usize = 128;

/// After a vain search this part of the table's inodes may come anew before the next search.
const VAIN_PART: usize = 16;

/// Most dirty inodes of a device that are made clean at a time when the table needs free entries.
const CLEAN_BATCH: usize = 32;

pub(crate) struct InodeTable<P: Platform> {
    shards: [Mutex<IdentityMap<Arc<Inode<P>>>>; SHARDS],
    count: AtomicUsize,
    /// The sums of all inodes, in the table or not.
    pub(crate) sums: Arc<InodeSums>,
    descriptors_max: usize,
    /// The shard where the next search starts.
    hand: AtomicUsize,
    pause: Pause,
}

/// The time until the next search of a table whose inodes are all in use. A search examines every inode, and holds up
/// all callers that wait for a free entry: programs that keep many files open must not make each new inode that dear.
#[derive(Default)]
struct Pause(AtomicUsize);

impl Pause {
    /// A search of so many inodes was in vain.
    fn begin(&self, inodes: usize) {
        self.0.store(inodes / VAIN_PART, Ordering::Relaxed);
    }

    /// Whether this caller goes without a search.
    fn try_pass_search(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A search for inodes to drop. Each of its steps examines a part of the table, so that the other tasks of the thread
/// run in between.
pub(crate) struct Sweep<P: Platform> {
    /// Unused, but partly unwritten; some of each device.
    pub(crate) unwritten: BTreeMap<DeviceKey, Vec<Arc<Inode<P>>>>,
    /// The steps to come, at most.
    left: usize,
}

impl<P: Platform> Sweep<P> {
    /// Goes through the table twice at most: an inode used since the last check is passed over once.
    pub(crate) fn begin() -> Self {
        Self { unwritten: BTreeMap::new(), left: 2 * SHARDS }
    }
}

impl<P: Platform> InodeTable<P> {
    pub(crate) fn new(descriptors_max: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::new(IdentityMap::default())),
            count: AtomicUsize::new(0),
            sums: Arc::default(),
            descriptors_max: descriptors_max.max(DESCRIPTORS_MIN),
            hand: AtomicUsize::new(0),
            pause: Pause::default(),
        }
    }

    fn shard(&self, identity: &Identity) -> MutexGuard<'_, IdentityMap<Arc<Inode<P>>>> {
        // The map uses the low and the very high bits.
        let at = (identity.mixed() >> 40) as usize & (SHARDS - 1);
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, identity: &Identity) -> Option<Arc<Inode<P>>> {
        let inode = self.shard(identity).get(identity).cloned()?;
        inode.used_now();
        Some(inode)
    }

    /// The inode of this identity: the present one, or a new one by `make`. The flag marks a new one.
    pub(crate) fn get_or_insert(&self, identity: &Identity, make: impl FnOnce() -> Inode<P>) -> (Arc<Inode<P>>, bool) {
        let mut shard = self.shard(identity);
        if let Some(inode) = shard.get(identity) {
            inode.used_now();
            return (Arc::clone(inode), false);
        }
        let inode = Arc::new(make());
        shard.insert(*identity, Arc::clone(&inode));
        self.count.fetch_add(1, Ordering::Relaxed);
        (inode, true)
    }

    /// Removes an inode after the loss of its last name. Its holders still hold it.
    pub(crate) fn forget(&self, inode: &Arc<Inode<P>>) {
        let mut shard = self.shard(&inode.identity);
        if shard.get(&inode.identity).is_some_and(|there| Arc::ptr_eq(there, inode)) {
            shard.remove(&inode.identity);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_above(INODES_MAX, self.descriptors_max)
    }

    /// Whether the table is full, and a search may find inodes to drop. A lack of descriptors is worth each search:
    /// without a free one the call may fail.
    pub(crate) fn is_worth_a_search(&self) -> bool {
        let lacks_descriptors = self.is_above(usize::MAX, self.descriptors_max);
        lacks_descriptors || self.is_full() && !self.pause.try_pass_search()
    }

    /// The table is still full after a search.
    pub(crate) fn searched_in_vain(&self) {
        self.pause.begin(self.len());
    }

    /// Files that may be open at a time: each may take all descriptors that a file can have. Some of all are for
    /// objects that are not open.
    pub(crate) fn open_files_max(&self) -> usize {
        (self.descriptors_max - self.descriptors_max / UNOPENED_PART) / DESCRIPTORS_OF_FILE
    }

    /// Files that may be opened in addition to those that are open.
    pub(crate) fn open_files_available(&self) -> usize {
        self.open_files_max().saturating_sub(self.sums.held.load(Ordering::Relaxed))
    }

    fn is_above(&self, inodes: usize, descriptors: usize) -> bool {
        self.len() >= inodes || self.sums.descriptors.load(Ordering::Relaxed) >= descriptors
    }

    /// Every inode. For the rare walks over all of them.
    pub(crate) fn all(&self) -> Vec<Arc<Inode<P>>> {
        let shards = self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.values().cloned().collect::<Vec<_>>()).collect()
    }

    /// Inodes without holders, and unused since the last check here or by a sweep: those of each part of the table.
    pub(crate) fn unused(&self) -> impl Iterator<Item = Vec<Arc<Inode<P>>>> {
        self.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = shard
                .values()
                .filter(|inode| Arc::strong_count(inode) == 1 && !inode.recent.swap(false, Ordering::Relaxed));
            idle.cloned().collect()
        })
    }

    /// Has an inode ask before its next write, if it has no holder but the caller and all of its state is on the host.
    pub(crate) fn try_forbid_writing(&self, inode: &Arc<Inode<P>>) -> bool {
        // No caller can come to hold it while the shard is locked.
        let _shard = self.shard(&inode.identity);
        let is_unused = Arc::strong_count(inode) <= 2 && inode.is_idle();
        if is_unused {
            inode.forbid_writing();
        }
        is_unused
    }

    /// Removes an inode that has no holder but the caller, if all of its state is on the host. Calls `remember` before.
    pub(crate) fn drop_idle(&self, inode: &Arc<Inode<P>>, remember: impl FnOnce(&Arc<Inode<P>>)) {
        let mut shard = self.shard(&inode.identity);
        let there = shard.get(&inode.identity).is_some_and(|there| Arc::ptr_eq(there, inode));
        if !there || Arc::strong_count(inode) > 2 || !inode.is_idle() {
            return;
        }
        remember(inode);
        shard.remove(&inode.identity);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Drops inodes of the next part of the table. None once an eighth of the capacity is free, or the search has gone
    /// through the table. Calls `remember` for each inode right before it leaves the table.
    pub(crate) fn sweep_on(&self, sweep: &mut Sweep<P>, remember: impl Fn(&Arc<Inode<P>>)) -> Option<()> {
        sweep.left = sweep.left.checked_sub(1)?;
        if !self.is_above(INODES_MAX / 8 * 7 + 1, self.descriptors_max / 8 * 7 + 1) {
            return None;
        }
        let at = self.hand.fetch_add(1, Ordering::Relaxed) % SHARDS;
        // Dropped after the lock.
        let mut dropped = Vec::new();
        let mut shard = self.shards[at].lock().unwrap_or_else(PoisonError::into_inner);
        shard.retain(|_, inode| {
            // No caller can come to hold it while the shard is locked.
            if Arc::strong_count(inode) > 1 || inode.recent.swap(false, Ordering::Relaxed) {
                return true;
            }
            if inode.is_idle() {
                remember(inode);
                dropped.push(Arc::clone(inode));
                return false;
            }
            let unwritten = sweep.unwritten.entry(inode.device).or_default();
            if unwritten.len() < CLEAN_BATCH {
                unwritten.push(Arc::clone(inode));
            }
            true
        });
        self.count.fetch_sub(dropped.len(), Ordering::Relaxed);
        drop(shard);
        Some(())
    }
}

#[cfg(test)]
mod tests;
