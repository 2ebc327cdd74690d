//! A mount whose device and memory the service manager stores for the next server.
//!
//! Owns: their names in the store, the check of an earlier server's descriptors, the removal of a mount without a
//! server.
//! Does not own: the memory's contents (`mount_memory`, front ends), the choice between going on and mounting anew (the
//! command).
//! Invariants: no function accesses a file below a mount without a server. Such an access would wait for ever.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat, major, minor};
use rustix::mount::UnmountFlags;

use super::device::FuseDevice;
use super::mount_memory::{MountLocation, MountMemory};
use super::mounting::{FuseMount, KIND, TopMount};
use crate::descriptor_store::DescriptorStore;
use crate::fuse::mounting::MountFlags;

/// The names in the service manager's store.
const DEVICE_IN_STORE: &str = "mount";
const MEMORY_IN_STORE: &str = "mount-memory";

/// The descriptors of a mount in the store.
pub const MOUNT_DESCRIPTORS: u64 = 2;

/// Major and minor number of `/dev/fuse`.
const DEVICE: (u32, u32) = (10, 229);

/// A mount inherited from an earlier server.
pub struct PersistedMount {
    device: OwnedFd,
    memory: MountMemory,
    location: MountLocation,
    flags: Option<MountFlags>,
}

impl PersistedMount {
    /// The mount that the service manager stores, if it stores one. It is in the view of mounts that this process has
    /// now.
    ///
    /// # Errors
    /// The reason why the stored mount cannot be continued.
    pub fn take(store: &mut DescriptorStore) -> Result<Option<Self>, String> {
        let (mut devices, mut memories) = (store.take(DEVICE_IN_STORE), store.take(MEMORY_IN_STORE));
        match (devices.pop(), memories.pop()) {
            (None, None) => Ok(None),
            (Some(device), Some(memory)) if devices.is_empty() && memories.is_empty() => {
                Self::checked(device, memory).map(Some)
            }
            _ => Err("systemd has no pair of a device and its memory".to_owned()),
        }
    }

    fn checked(device: OwnedFd, memory: OwnedFd) -> Result<Self, String> {
        let found = fstat(&device).map_err(|error| error.to_string())?;
        let number = (major(found.st_rdev), minor(found.st_rdev));
        if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice || number != DEVICE {
            return Err("the device is not /dev/fuse".to_owned());
        }
        let memory = MountMemory::inherited(memory).map_err(|error| format!("its memory: {error}"))?;
        let location = memory.location().ok_or("its memory does not say where it is")?;
        let at = TopMount::at(&location.point).filter(|top| top.mount_id == location.mount_id);
        match at.filter(|top| top.file_system() == location.file_system && is_connected(&device)) {
            Some(top) => Ok(Self { device, memory, location, flags: top.flags() }),
            None => Err(format!("it is not mounted at {} any more", location.point.display())),
        }
    }

    /// Its mount point.
    pub fn point(&self) -> &Path {
        &self.location.point
    }

    /// The kernel's id of the mount.
    pub fn mount_id(&self) -> u64 {
        self.location.mount_id
    }

    /// Memory in which the mount persists what its successor needs.
    pub fn memory(&self) -> &MountMemory {
        &self.memory
    }

    /// Takes copies of the mount out of this process's view, so that the files below it are in sight. Call it in a view
    /// of the process's own.
    ///
    /// # Errors
    /// The host's.
    pub fn hide(&self) -> io::Result<()> {
        while TopMount::at(self.point()).is_some_and(|top| top.file_system() == self.location.file_system) {
            rustix::mount::unmount(self.point(), UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
        Ok(())
    }

    /// The mount, and its memory.
    pub fn into_mount(self) -> (FuseMount, MountMemory) {
        let mount =
            FuseMount { device: FuseDevice::persistent(self.device), location: Some(self.location), flags: self.flags };
        (mount, self.memory)
    }

    /// Has the service manager close the device and the memory that it stores.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn forget() -> io::Result<()> {
        DescriptorStore::remove(DEVICE_IN_STORE)?;
        DescriptorStore::remove(MEMORY_IN_STORE)
    }
}

/// Whether the kernel still has the mount of a device.
fn is_connected(device: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(device, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && !polled[0].revents().contains(PollFlags::ERR)
}

impl FuseMount {
    /// Writes the mount's location into the memory. All threads will share one descriptor of the device, since a later
    /// server has that one alone.
    ///
    /// # Errors
    /// The kernel does not show the mount, or its path is too long.
    pub fn keep(&mut self, memory: &MountMemory) -> io::Result<()> {
        self.device.keep();
        let location = self.location.as_ref().filter(|location| memory.try_note_location(location));
        location.map(drop).ok_or_else(|| io::Error::other("the kernel does not show where it is mounted"))
    }

    /// Has the service manager store the device and the memory. Call it once the kernel and the machine have agreed.
    ///
    /// # Errors
    /// The manager cannot be notified.
    pub fn offer(&self, memory: &MountMemory) -> io::Result<()> {
        DescriptorStore::put(MEMORY_IN_STORE, memory.descriptor())?;
        DescriptorStore::put(DEVICE_IN_STORE, self.device.as_fd())
    }
}

/// Takes a mount of this program away from a point, if its server is dead, or `in_any_case`. Returns whether there was
/// one.
///
/// # Errors
/// The host's.
pub fn remove_mount(point: &Path, in_any_case: bool) -> io::Result<bool> {
    // This does not ask the server of a mount at the point itself.
    let point: PathBuf = point.canonicalize()?;
    let is_ours = TopMount::at(&point).is_some_and(|top| top.kind == KIND.as_bytes());
    let is_dead = || {
        let found = std::fs::metadata(&point);
        found.is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN))
    };
    if !is_ours || !(in_any_case || is_dead()) {
        return Ok(false);
    }
    rustix::mount::unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    Ok(true)
}
