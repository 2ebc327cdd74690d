//! The devices that hold the files, found from the host's facts about each file.
//!
//! Owns: one device of the engine for each file system (`st_dev`) and each block device (`st_rdev`) on which a file was
//! opened.
//! Does not own: files; reading and writing a device (`platform-linux`).
//! Invariants: a device stays until the cache ends. Making one may block, and holds no lock meanwhile.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::{DeviceId, Engine};
use afflux_linux_device::{Caching, HostDevice, LinuxPlatform, WorkerPool};
use rustix::fs::{Mode, OFlags, SeekFrom, fstat, openat, seek};

use crate::faults::Faults;

/// A device by the host's number for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum DeviceNumber {
    /// A file system.
    Files(u64),
    /// A block device, which is its only file.
    Block(u64),
}

/// A device of the cache.
pub(crate) struct CacheDevice {
    pub(crate) id: DeviceId,
    pub(crate) name: String,
    pub(crate) host: Arc<HostDevice>,
    /// The size of a block device.
    pub(crate) size: Option<u64>,
    /// For calls about its files that may take the host long. Other devices' calls do not wait for them.
    pub(crate) calls: WorkerPool,
    /// Whether a round of upkeep of its files runs, and the file with which the next one begins.
    pub(crate) is_tended: AtomicBool,
    pub(crate) looks_from: AtomicUsize,
}

/// Threads for the calls about a device's files.
const CALLS_MAX: usize = 4;
const CALLS_QUEUE: usize = 1024;

/// All devices of the cache.
pub(crate) struct CacheDevices {
    caching: Caching,
    faults: Option<Faults>,
    list: Mutex<BTreeMap<DeviceNumber, Arc<CacheDevice>>>,
}

impl CacheDevices {
    pub(crate) fn new(caching: Caching, faults: Option<Faults>) -> Self {
        Self { caching, faults, list: Mutex::default() }
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<DeviceNumber, Arc<CacheDevice>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&self) -> Vec<Arc<CacheDevice>> {
        self.list().values().cloned().collect()
    }

    /// The device of an open file; makes it for the first file there. May block.
    pub(crate) fn of(
        &self,
        key: DeviceNumber,
        fd: &OwnedFd,
        path: &Path,
        engine: &Arc<Engine<LinuxPlatform>>,
    ) -> io::Result<Arc<CacheDevice>> {
        if let Some(found) = self.list().get(&key) {
            return Ok(Arc::clone(found));
        }
        let platform = engine.platform();
        let (host, size) = match key {
            DeviceNumber::Block(_) => {
                let own = fd.try_clone()?;
                let size = seek(&own, SeekFrom::End(0))?;
                (HostDevice::of_block_device(platform, own, size), Some(size))
            }
            DeviceNumber::Files(device) => {
                (HostDevice::new(platform, directory_of(fd, path, device)?, self.caching)?, None)
            }
        };
        let mut list = self.list();
        if let Some(found) = list.get(&key) {
            return Ok(Arc::clone(found));
        }
        let name = match key {
            DeviceNumber::Files(number) => numbers(number),
            DeviceNumber::Block(number) => format!("block {}", numbers(number)),
        };
        let device = self.faults.as_ref().map_or_else(|| Arc::<HostDevice>::clone(&host) as _, |it| it.over(&host));
        let id = engine.add_device(&name, device);
        let calls = WorkerPool::new("afflux-file", CALLS_MAX, CALLS_QUEUE);
        let (is_tended, looks_from) = (AtomicBool::new(false), AtomicUsize::new(0));
        let added = Arc::new(CacheDevice { id, name, host, size, calls, is_tended, looks_from });
        list.insert(key, Arc::clone(&added));
        Ok(added)
    }
}

/// In the form of `/proc/self/mountinfo`.
fn numbers(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// A directory of the file system, to try the limits of files there: the file's own directory, if possible. A file
/// without a name stands for itself.
fn directory_of(fd: &OwnedFd, path: &Path, device: u64) -> io::Result<OwnedFd> {
    let told = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok();
    let parents = [told.as_deref(), Some(path)].into_iter().flatten().filter_map(Path::parent);
    for parent in parents {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(rustix::fs::CWD, parent, flags, Mode::empty());
        let here = opened.ok().filter(|opened| fstat(opened).is_ok_and(|stat| stat.st_dev == device));
        if let Some(opened) = here {
            return Ok(opened);
        }
    }
    File::from(fd.try_clone()?).as_fd().try_clone_to_owned()
}
