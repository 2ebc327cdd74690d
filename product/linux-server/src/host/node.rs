//! An open object of the host.
//!
//! Owns: its descriptor, the location where it was last found below an export, its slot among the files that the
//! service manager stores. Where objects cannot share syncs with each other, also its own group of shared syncs.
//! Does not own: names; its identity, which `identity` computes.
//! Invariants: the thread that drops the last reference to an object never closes it. The close of an object without a
//! name frees its blocks, and the host may wait for its journal there. Nor does that thread notify the service manager.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use afflux_volume::{DeviceKey, Kind, Node, Stat, VolumeError};

use super::calls;
use super::stable::Group;
use super::unnamed_slots::StoredUnnamed;
use afflux_linux_device::pool::WorkerPool;
use afflux_linux_device::{HostFile, LentDescriptor, SpareDescriptors};

/// The depth of a directory below its export's root is unknown.
const UNKNOWN: u32 = u32::MAX;

pub(super) struct HostNode {
    /// Present until the drop.
    fd: Option<Arc<OwnedFd>>,
    /// Whether the descriptor is more than O_PATH.
    real: bool,
    kind: Kind,
    device: DeviceKey,
    fileid: u64,
    /// It is the root of a file system that stores nothing, shown as an empty directory.
    void: bool,
    /// Its bytes, while they are in use.
    data: Mutex<Weak<HostFile>>,
    /// The number of steps up to its export's root, when it was last found.
    depth: AtomicU32,
    /// Changes of this object that share a sync of it alone.
    syncs: OnceLock<Arc<Group<()>>>,
    /// Whether other bytes may be the same name in this directory, once that is known.
    folds: OnceLock<bool>,
    /// The service manager stores it, since it has no name or is about to lose it.
    stored: Mutex<Option<StoredUnnamed>>,
    /// The pool of its device, where calls about it run.
    pool: WorkerPool,
}

impl HostNode {
    /// An open object. `pool` belongs to its device. `void`: its file system stores nothing.
    pub(super) fn new(fd: OwnedFd, real: bool, stat: &Stat, void: bool, pool: WorkerPool) -> Self {
        let depth = AtomicU32::new(UNKNOWN);
        Self {
            fd: Some(Arc::new(fd)),
            real,
            kind: stat.kind,
            device: stat.device,
            fileid: stat.fileid,
            void,
            data: Mutex::default(),
            depth,
            syncs: OnceLock::new(),
            folds: OnceLock::new(),
            stored: Mutex::default(),
            pool,
        }
    }

    pub(super) fn pool(&self) -> &WorkerPool {
        &self.pool
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Some(fd) => fd.as_fd(),
            None => unreachable!("taken by drop alone"),
        }
    }

    /// Whether the descriptor does more than name the object.
    pub(super) fn is_real(&self) -> bool {
        self.real
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn device(&self) -> DeviceKey {
        self.device
    }

    pub(super) fn fileid(&self) -> u64 {
        self.fileid
    }

    /// Whether it is the root of a file system that stores nothing: it has no entry and cannot be changed.
    pub(super) fn is_void(&self) -> bool {
        self.void
    }

    /// Refuses a change of a directory of which nothing can be stored.
    pub(super) fn check_storing(&self) -> Result<(), VolumeError> {
        if self.void { Err(VolumeError::ReadOnly) } else { Ok(()) }
    }

    /// Shows each entry of a directory, as [`calls::each_entry`].
    pub(super) fn each_entry(&self, show: impl FnMut(&[u8], u64, bool)) -> Result<(), VolumeError> {
        if self.void {
            return Ok(());
        }
        calls::each_entry(calls::open_directory(self.fd())?.as_fd(), show)
    }

    /// Its own descriptor.
    pub(super) fn shared_fd(&self) -> Option<Arc<OwnedFd>> {
        self.fd.clone()
    }

    /// Its bytes, with a descriptor just opened for writing or only for reading. A descriptor for writing replaces the
    /// present one. While it is open, no process gets a lease on the file, so no request meets one.
    pub(super) fn data(
        &self,
        spare: &Arc<SpareDescriptors>,
        fd: Arc<OwnedFd>,
        writable: bool,
        stat: &Stat,
    ) -> Arc<HostFile> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match data.upgrade() {
            Some(file) => {
                if writable {
                    file.lend(LentDescriptor::of_others(fd));
                }
                file
            }
            None => {
                let file = HostFile::of_tree(spare, &self.pool, fd);
                *data = Arc::downgrade(&file);
                file
            }
        };
        file.note_owner(stat.uid, stat.mode);
        file
    }

    /// Its bytes, if they are in use.
    pub(super) fn opened_data(&self) -> Option<Arc<HostFile>> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    pub(super) fn stat(&self) -> Result<Stat, VolumeError> {
        let stat = calls::stat(self.fd(), "")?;
        if self.kind == Kind::Regular
            && let Some(file) = self.data.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
        {
            file.note_owner(stat.uid, stat.mode);
        }
        Ok(stat)
    }

    /// Whether root alone may write it.
    pub(super) fn is_roots(&self) -> Result<bool, VolumeError> {
        let stat = self.stat()?;
        Ok(stat.uid == 0 && stat.mode & 0o022 == 0)
    }

    pub(super) fn syncs(&self) -> &Arc<Group<()>> {
        self.syncs.get_or_init(|| Arc::new(Group::new()))
    }

    /// Whether other bytes may be the same name in this directory, as far as that was learnt.
    pub(super) fn may_fold_names(&self) -> bool {
        self.folds.get().copied().unwrap_or(false)
    }

    /// Learns that with `ask`, once.
    pub(super) fn learn_names(&self, ask: impl FnOnce() -> bool) {
        self.folds.get_or_init(ask);
    }

    /// The slot of its descriptor with the service manager, under a lock that a change of it holds.
    pub(super) fn stored(&self) -> MutexGuard<'_, Option<StoredUnnamed>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the service manager stores it. False also while that changes.
    pub(super) fn is_stored(&self) -> bool {
        self.stored.try_lock().is_ok_and(|stored| stored.is_some())
    }

    pub(super) fn depth(&self) -> Option<u32> {
        Some(self.depth.load(Ordering::Relaxed)).filter(|depth| *depth != UNKNOWN)
    }

    pub(super) fn set_depth(&self, depth: u32) {
        self.depth.store(depth, Ordering::Relaxed);
    }
}

impl Drop for HostNode {
    fn drop(&mut self) {
        let stored = self.stored.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fd) = self.fd.take() {
            // Bounded by the inodes that the volume caches.
            self.pool.post_near(move || drop((fd, stored)));
        }
    }
}

/// The present path of a node on this host, for people. None for a node of another tree.
pub fn host_path(node: &Node) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", node.get::<HostNode>()?.fd().as_raw_fd())).ok()?;
    path.is_absolute().then_some(path)
}

/// The host's side of a node.
///
/// # Panics
/// If the node belongs to another tree.
pub(super) fn host_node(node: &Node) -> Arc<HostNode> {
    let Some(node) = node.shared() else { panic!("a node of another tree") };
    node
}
