//! An open object of the host.
//!
//! Owns: its descriptor, where it was last found below an export, who shares its syncs where those of several objects
//! cannot be shared.
//! Does not own: names; identity is computed from it (`identity`).
//! Invariants: closing never happens on the thread that lets go of the last reference to a file,
//! since with its last name gone that may take the host long.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use afflux_volume::{DeviceKey, Kind, Stat, VolumeError};

use super::calls;
use super::stable::Group;
use crate::HostFile;
use crate::pool::WorkerPool;

/// Not known how far below its export's root a directory is.
const UNKNOWN: u32 = u32::MAX;

pub(super) struct HostNode {
    /// Until dropped.
    fd: Option<OwnedFd>,
    /// Whether the descriptor is more than O_PATH.
    real: bool,
    kind: Kind,
    device: DeviceKey,
    fileid: u64,
    /// Its bytes, as long as somebody uses them.
    data: Mutex<Weak<HostFile>>,
    /// How many steps up its export's root was last found.
    depth: AtomicU32,
    /// Changes of it that share a sync of it alone.
    syncs: OnceLock<Arc<Group<()>>>,
    /// Its device's: where calls about it run.
    pool: WorkerPool,
}

impl HostNode {
    /// An open object. `pool` is its device's.
    pub(super) fn new(fd: OwnedFd, real: bool, stat: &Stat, pool: WorkerPool) -> Self {
        let depth = AtomicU32::new(UNKNOWN);
        Self {
            fd: Some(fd),
            real,
            kind: stat.kind,
            device: stat.device,
            fileid: stat.fileid,
            data: Mutex::default(),
            depth,
            syncs: OnceLock::new(),
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

    /// Whether the descriptor can be used for more than naming the object.
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

    /// Its bytes, with a descriptor that was just opened for writing or for reading alone. One for writing takes the
    /// place of the descriptor that is there. While it is open, nobody gets a lease on the file, so no request meets one.
    pub(super) fn data(&self, fd: OwnedFd, writable: bool) -> Arc<HostFile> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        match data.upgrade() {
            Some(file) => {
                if writable {
                    file.lend(fd);
                }
                file
            }
            None => {
                let file = Arc::new(HostFile::new(fd));
                *data = Arc::downgrade(&file);
                file
            }
        }
    }

    pub(super) fn stat(&self) -> Result<Stat, VolumeError> {
        calls::stat(self.fd(), "")
    }

    pub(super) fn syncs(&self) -> &Arc<Group<()>> {
        self.syncs.get_or_init(|| Arc::new(Group::new()))
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
        if self.kind == Kind::Regular
            && let Some(fd) = self.fd.take()
        {
            // Bounded by the inodes that the volume keeps.
            self.pool.post_near(move || drop(fd));
        }
    }
}
