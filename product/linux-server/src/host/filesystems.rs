//! The file systems found below the exports.
//!
//! Owns: which of them have the same id; a descriptor on each, for opening handles and for syncs; which of them store
//! files.
//! Does not own: devices of the engine (the volume makes one when it finds a file system); the id that a file system
//! has over restarts (`file_system_facts`); the table of mounts (`mounts`).
//! Invariants: two file systems that are known at a time have different ids. The server holds a known file system open,
//! so the host gives the device number to no other. Of a disk and a copy with the UUID of the disk, the first has the
//! lasting id; as two exports they are refused (`start`). A file system that hangs does not delay the search for
//! others. A file system without storage, like `/proc`, is never known: callers see its directories as empty ones.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_volume::{DeviceKey, Kind, VolumeError};
use rustix::fs::{Mode, OFlags, ResolveFlags, major, openat, openat2};

use super::calls::{self, error_of, io_error};
use super::file_system_facts::{self, FileSystemTraits};
use super::mounts::{HostMounts, MountPoint};
use super::node::HostNode;
use super::stable::Group;
use crate::host::stable::{SyncScope, covered_on};
use afflux_linux_device::stores_files;

/// Most file systems that are remembered: one for each mount point below an export.
const FILE_SYSTEMS_MAX: usize = 1024;

pub(super) struct FileSystems {
    known: Mutex<Vec<FileSystem>>,
    /// The host's mount points.
    pub(super) mounts: HostMounts,
}

struct FileSystem {
    device: DeviceKey,
    id: u64,
    /// A file system that was found before, and has the same lasting id.
    twin: Option<DeviceKey>,
    traits: FileSystemTraits,
    /// Holds the file system, whether or not `mount` does.
    _held: OwnedFd,
    /// Not O_PATH, since open_by_handle_at and syncfs need more. `None` if nothing could be opened.
    mount: Option<Arc<OwnedFd>>,
    /// The syncs that changes share, where they can.
    shared: Option<Arc<SharedSync>>,
}

/// The id of an object's file system.
pub(super) struct ObjectFileSystem {
    pub(super) id: u64,
    /// It stores nothing.
    pub(super) is_void: bool,
}

/// The shared syncs of a file system's changes.
pub(super) struct SharedSync {
    pub(super) group: Group<Arc<HostNode>>,
    pub(super) covers: SyncScope,
    pub(super) directory: Arc<OwnedFd>,
}

impl FileSystems {
    /// No file systems yet, below these directories.
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        Self { known: Mutex::new(Vec::new()), mounts: HostMounts::below(paths) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FileSystem>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a file system that has an object opened before.
    pub(super) fn known_id(&self, device: DeviceKey) -> Option<u64> {
        self.lock().iter().find(|known| known.device == device).map(|known| known.id)
    }

    /// A file system that was found before this one, and has the same identity.
    pub(super) fn twin(&self, device: DeviceKey) -> Option<DeviceKey> {
        self.lock().iter().find(|known| known.device == device)?.twin
    }

    /// The properties of a file system of which an object was opened before.
    pub(super) fn traits(&self, device: DeviceKey) -> Option<FileSystemTraits> {
        self.lock().iter().find(|known| known.device == device).map(|known| known.traits)
    }

    /// Meets an object's file system.
    ///
    /// # Errors
    /// [`VolumeError::Denied`] for a mounted file of a file system that stores nothing.
    pub(super) fn meet(
        &self,
        device: DeviceKey,
        fd: BorrowedFd<'_>,
        kind: Kind,
    ) -> Result<ObjectFileSystem, VolumeError> {
        if let Some(id) = self.known_id(device) {
            return Ok(ObjectFileSystem { id, is_void: false });
        }
        match (stores_files(major(device.0), fd).map_err(error_of)?, kind) {
            (true, _) => Ok(ObjectFileSystem { id: self.id(device, fd, kind)?, is_void: false }),
            (false, Kind::Directory) => Ok(ObjectFileSystem { id: device.0, is_void: true }),
            (false, _) => Err(VolumeError::Denied),
        }
    }

    fn id(&self, device: DeviceKey, fd: BorrowedFd<'_>, kind: Kind) -> Result<u64, VolumeError> {
        let mount = match kind {
            Kind::Directory => unless_refused(calls::open_directory(fd))?,
            // A mounted file: reopened through its own descriptor.
            Kind::Regular => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                // Another program may have a lease on it; the open does not wait for that.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                unless_refused(rustix::fs::open(path, flags, Mode::empty()).map_err(error_of))?
            }
            _ => None,
        };
        let lasting = file_system_facts::lasting(device, fd, mount.as_ref().map(AsFd::as_fd))?;
        let (traits, held) = (FileSystemTraits::of(fd), fd.try_clone_to_owned().map_err(|error| io_error(&error))?);
        let mut known = self.lock();
        if let Some(known) = known.iter().find(|known| known.device == device) {
            return Ok(known.id);
        }
        if known.len() == FILE_SYSTEMS_MAX {
            return Err(VolumeError::NoMemory);
        }
        let first = |id: u64| known.iter().find(|other| other.id == id).map(|other| other.device);
        let twin = lasting.and_then(first);
        let mut id = lasting.filter(|_| twin.is_none()).unwrap_or_else(|| file_system_facts::of_stay(device, fd));
        while first(id).is_some() {
            id = file_system_facts::random();
        }
        let mount = mount.map(Arc::new);
        let shared = mount.clone().and_then(|directory| {
            let covers = covered_on(directory.as_fd(), device, kind);
            let shared = SharedSync { group: Group::new(), covers, directory };
            (covers != SyncScope::Nothing).then(|| Arc::new(shared))
        });
        known.push(FileSystem { device, id, twin, traits, _held: held, mount, shared });
        Ok(id)
    }

    /// Descriptors on the file system with this id, and its devices.
    pub(super) fn mounts(&self, id: u64) -> Vec<(DeviceKey, Arc<OwnedFd>)> {
        self.lock().iter().filter(|known| known.id == id).filter_map(FileSystem::reached).collect()
    }

    pub(super) fn all_mounts(&self) -> Vec<(DeviceKey, Arc<OwnedFd>)> {
        self.lock().iter().filter_map(FileSystem::reached).collect()
    }

    /// The shared syncs for this device's file system, if it can have them.
    pub(super) fn shared_sync(&self, device: DeviceKey) -> Option<Arc<SharedSync>> {
        self.lock().iter().find(|known| known.device == device).and_then(|known| known.shared.clone())
    }

    /// A descriptor on the file system of this device.
    pub(super) fn mount(&self, device: DeviceKey) -> Option<Arc<OwnedFd>> {
        self.lock().iter().find(|known| known.device == device).and_then(|known| known.mount.clone())
    }

    /// The mount points below the exports whose file systems were not found yet. Asks no file system.
    pub(super) fn unmet(&self) -> Result<Vec<MountPoint>, VolumeError> {
        let points = self.mounts.points()?;
        let unmet = points.below_exports.iter().filter(|at| self.known_id(at.device).is_none());
        Ok(unmet.cloned().collect())
    }

    /// Meets the file system at a mount point, if there is one still.
    pub(super) fn meet_at(&self, at: &MountPoint) -> Result<(), VolumeError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let met = openat(rustix::fs::CWD, &at.export, flags | OFlags::DIRECTORY, Mode::empty())
            .and_then(|root| openat2(&root, &at.below, flags, Mode::empty(), resolve))
            .map_err(error_of)
            .and_then(|fd| {
                let stat = calls::stat(fd.as_fd(), "")?;
                self.meet(stat.device, fd.as_fd(), stat.kind)
            });
        match met {
            // It was unmounted meanwhile.
            Ok(_) | Err(VolumeError::NotFound | VolumeError::NotDirectory) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The opened file, or none if this process may not open it. After any other failure a later try may succeed, so the
/// file system does not count as found yet: without this descriptor, none of its objects could be opened by identity.
fn unless_refused(opened: Result<OwnedFd, VolumeError>) -> Result<Option<OwnedFd>, VolumeError> {
    match opened {
        Err(error @ (VolumeError::NoMemory | VolumeError::NoDescriptor | VolumeError::Io { .. })) => Err(error),
        opened => Ok(opened.ok()),
    }
}

impl FileSystem {
    fn reached(&self) -> Option<(DeviceKey, Arc<OwnedFd>)> {
        self.mount.clone().map(|mount| (self.device, mount))
    }
}
