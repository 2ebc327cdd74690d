//! The file systems met below the exports.
//!
//! Owns: an id for each file system, which survives restarts where the host gives one; a descriptor
//! on each, for opening handles and for syncs.
//! Does not own: devices of the engine (the volume makes one when it meets a file system).
//! Invariants: two file systems that are known at a time have different ids. A file system that hangs keeps no other from
//! being met.

use std::fs;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use afflux_volume::{DeviceKey, Kind, VolumeError};
use rustix::fs::{Mode, OFlags, ResolveFlags, fstatvfs, major, makedev, minor, openat, openat2};

use super::Core;
use super::calls::{self, error_of};
use super::journal::{SyncScope, covered_on};
use super::node::HostNode;
use super::stable::Group;

/// Most file systems that are remembered: one for each mount point below an export.
const FILE_SYSTEMS_MAX: usize = 1024;

pub(super) struct FileSystems {
    known: Mutex<Vec<FileSystem>>,
    /// The exports' paths on the host, for finding mount points below them.
    paths: Vec<PathBuf>,
}

struct FileSystem {
    device: DeviceKey,
    id: u64,
    /// Not O_PATH, since open_by_handle_at and syncfs need more. `None` if nothing could be opened.
    mount: Option<Arc<OwnedFd>>,
    /// The way that changes share syncs, where they can.
    shared: Option<Arc<SharedSync>>,
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
        Self { known: Mutex::new(Vec::new()), paths }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FileSystem>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a file system that has an object opened before.
    pub(super) fn known_id(&self, device: DeviceKey) -> Option<u64> {
        self.lock().iter().find(|known| known.device == device).map(|known| known.id)
    }

    /// The id of an object's file system.
    pub(super) fn id(&self, device: DeviceKey, fd: BorrowedFd<'_>, kind: Kind) -> Result<u64, VolumeError> {
        if let Some(id) = self.known_id(device) {
            return Ok(id);
        }
        let own = fstatvfs(fd).map_err(error_of)?.f_fsid;
        let mount = match kind {
            Kind::Directory => calls::open_directory(fd).ok(),
            // A mounted file: reopened through its own descriptor.
            Kind::Regular => {
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                // Another program may have a lease on it; the open does not wait for that.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                rustix::fs::open(path, flags, Mode::empty()).ok()
            }
            _ => None,
        };
        let mut known = self.lock();
        if let Some(known) = known.iter().find(|known| known.device == device) {
            return Ok(known.id);
        }
        if known.len() == FILE_SYSTEMS_MAX {
            return Err(VolumeError::NoMemory);
        }
        let mut id = if own == 0 { device.0 } else { own };
        while known.iter().any(|other| other.id == id) {
            // Two images of one file system are told apart only while this process lives.
            id = id.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(device.0 | 1);
        }
        let mount = mount.map(Arc::new);
        let shared = mount.clone().and_then(|directory| {
            let covers = covered_on(directory.as_fd(), device, kind);
            let shared = SharedSync { group: Group::new(), covers, directory };
            (covers != SyncScope::Nothing).then(|| Arc::new(shared))
        });
        known.push(FileSystem { device, id, mount, shared });
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
}

impl FileSystem {
    fn reached(&self) -> Option<(DeviceKey, Arc<OwnedFd>)> {
        self.mount.clone().map(|mount| (self.device, mount))
    }
}

/// A place below an export where a file system is mounted.
pub(super) struct MountPoint {
    device: DeviceKey,
    export: PathBuf,
    below: PathBuf,
}

impl Core {
    /// The places below the exports where file systems are mounted now that were not met yet. Asks no file system.
    fn unmet_mounts(&self) -> Vec<MountPoint> {
        let Ok(table) = fs::read("/proc/self/mountinfo") else {
            return Vec::new();
        };
        let points = table.split(|&byte| byte == b'\n').filter_map(mount_point);
        let unmet = points.filter(|(device, _)| self.file_systems.known_id(*device).is_none());
        let below = unmet.flat_map(|(device, point)| {
            self.file_systems.paths.iter().filter_map(move |export| {
                let below = point.strip_prefix(export).ok().filter(|below| !below.as_os_str().is_empty())?;
                Some(MountPoint { device, export: export.clone(), below: below.to_owned() })
            })
        });
        below.collect()
    }

    /// Meets a file system. One that cannot be met now is met by a later lookup.
    fn meet(&self, at: &MountPoint) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let root = openat(rustix::fs::CWD, &at.export, flags, Mode::empty());
        let Ok(fd) = root.and_then(|root| openat2(&root, &at.below, flags, Mode::empty(), resolve)) else {
            return;
        };
        if let Ok(stat) = calls::stat(fd.as_fd(), "") {
            let _ = self.file_systems.id(stat.device, fd.as_fd(), stat.kind);
        }
    }
}

/// Meets the file systems below the exports, each on the threads of its device, until one has this id. Returns descriptors
/// on that one, and its devices.
pub(super) async fn meet_mounts(core: &Arc<Core>, id: u64) -> Vec<(DeviceKey, Arc<OwnedFd>)> {
    let looking = Arc::clone(core);
    let unmet = core.pools.common().run(move || looking.unmet_mounts()).await;
    let meetings = unmet.into_iter().map(|at| {
        let meeting = Arc::clone(core);
        Box::pin(core.pools.of(at.device).run(move || meeting.meet(&at)))
    });
    let mut meetings: Vec<_> = meetings.collect();
    poll_fn(|cx| {
        meetings.retain_mut(|meeting| meeting.as_mut().poll(cx).is_pending());
        let found = core.file_systems.mounts(id);
        if found.is_empty() && !meetings.is_empty() { Poll::Pending } else { Poll::Ready(found) }
    })
    .await
}

/// The device and the mount point in a line of mountinfo: its third and its fifth field, this with octal escapes.
fn mount_point(line: &[u8]) -> Option<(DeviceKey, PathBuf)> {
    use std::os::unix::ffi::OsStringExt;
    let mut fields = line.split(|&byte| byte == b' ');
    let (major, minor) = str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
    let device = DeviceKey(makedev(major.parse().ok()?, minor.parse().ok()?));
    let field = fields.nth(1)?;
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).filter(|digits| first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match octal {
            Some(digits) => {
                path.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                rest = &tail[3..];
            }
            None => {
                path.push(first);
                rest = tail;
            }
        }
    }
    Some((device, PathBuf::from(std::ffi::OsString::from_vec(path))))
}

/// A device's name for people: the host's name if there is one, else the numbers.
pub(super) fn device_name(key: DeviceKey) -> String {
    let (major, minor) = (major(key.0), minor(key.0));
    let named = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let named = named.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    named.unwrap_or_else(|| format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests;
