//! Mounting and unmounting, and the flags `sync` and `dirsync` of a mount, as the kernel has them now.
//!
//! The kernel does not report these flags to a FUSE server, and `mount -o remount` changes them. The kernel's table of
//! mounts has them.
//!
//! Owns: the choice between mount(2) and `fusermount3`, the options of a mount; reading the flags from the table, when
//! to read again.
//! Does not own: the messages (`session`), the server's own view of the mounts (`own_mounts`), when a mount ends (the
//! command), the flags' effect (front ends).
//! Invariants: files below the point stay reachable through descriptors that are open before. The kernel checks
//! permissions (`default_permissions`); setuid bits and devices below the mount have no effect. A flag that mount(2)
//! has set counts from the first question after that call. Any other change of it counts a second later. The table is
//! that of the view that has the mount, whichever view this process has.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::mount::{MountFlags as NewMountFlags, UnmountFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
};
use rustix::process::{getegid, geteuid};

use crate::fuse::device::{self, FuseDevice};
use crate::fuse::mount_memory::MountLocation;
use crate::fuse::own_mounts::{OwnMounts, unescaped};

/// The kind of the mounts, as /proc/self/mounts shows it.
pub(super) const KIND: &str = "fuse.afflux";

/// The helper that mounts for users without privilege.
const HELPER: &str = "fusermount3";

/// Why a directory could not be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The kernel has no FUSE, or this process cannot use it.
    #[error("/dev/fuse cannot be opened: {0}")]
    Device(io::Error),
    /// The point cannot be mounted on.
    #[error("{}: {source}", point.display())]
    Point {
        /// Path of the mount point.
        point: PathBuf,
        /// The host's answer.
        source: io::Error,
    },
    /// There is nothing at the point.
    #[error("the mount point {0} does not exist; make it: sudo mkdir -p {0}", point.display())]
    NoPoint {
        /// Path of the mount point.
        point: PathBuf,
    },
    /// The helper mounts only where its user may write.
    #[error("{HELPER} (Debian's fuse3) mounts only where its user may write, and this user may not write {}; name another mount point", point.display())]
    NotWritable {
        /// Path of the mount point.
        point: PathBuf,
    },
    /// Only root can mount by itself, and the helper failed.
    #[error("{HELPER} (Debian's fuse3) could not mount: {0}")]
    Helper(String),
}

/// A directory to mount on.
#[derive(Clone, Debug)]
pub struct MountTarget {
    path: PathBuf,
}

impl MountTarget {
    /// The directory at this path.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn at(path: &Path) -> Result<Self, MountError> {
        let failed = |source| MountError::Point { point: path.to_owned(), source };
        let absolute = path.canonicalize().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => MountError::NoPoint { point: path.to_owned() },
            _ => failed(source),
        })?;
        if !absolute.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { path: absolute })
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a mount of Afflux is on it already.
    pub fn is_mounted(&self) -> bool {
        TopMount::at(&self.path).is_some_and(|top| top.kind == KIND.as_bytes())
    }

    /// Takes mounts of Afflux on it out of this process's view. Call it in a view of the process's own.
    ///
    /// # Errors
    /// The host's.
    pub fn uncover(&self) -> io::Result<()> {
        while self.is_mounted() {
            rustix::mount::unmount(self.path(), UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
        Ok(())
    }

    /// Finds what would prevent [`Self::mount`] from mounting for a user other than root, without a mount.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn check_helper(&self) -> Result<(), MountError> {
        self.check_writable()?;
        let asked = Command::new(HELPER).arg("--version").stdin(Stdio::null()).output();
        asked.map(drop).map_err(|error| MountError::Helper(error.to_string()))
    }

    /// Where the sticky bit is, others' directories are closed to the helper, too.
    fn check_writable(&self) -> Result<(), MountError> {
        let found = self.path.metadata().map_err(|source| MountError::Point { point: self.path.clone(), source })?;
        let is_others = found.mode() & 0o1000 != 0 && found.uid() != geteuid().as_raw();
        match access(&self.path, Access::WRITE_OK) {
            Ok(()) if !is_others => Ok(()),
            _ => Err(MountError::NotWritable { point: self.path.clone() }),
        }
    }

    /// Mounts on it, with `source` as the mount's name and with these flags. Root's mount is for all users, another
    /// user's for that user. Nothing below can be used before the mount is served. With a view of its `own`, this
    /// process does not see the mount.
    ///
    /// # Errors
    /// The kernel or the helper refuses it.
    pub fn mount(&self, source: &Path, flags: SyncFlags, own: Option<&OwnMounts>) -> Result<FuseMount, MountError> {
        let failed = |source| MountError::Point { point: self.path.clone(), source };
        let Some(own) = own else { return self.mount_here(source, flags) };
        let (mount, copied) = own
            .in_common(|| {
                let mount = self.mount_here(source, flags)?;
                Ok((mount, TopMount::at(self.path())))
            })
            .map_err(failed)??;
        // Where the host's mounts are shared, the mount has a copy in the own view.
        if copied
            .is_some_and(|common| TopMount::at(self.path()).is_some_and(|own| own.file_system == common.file_system))
        {
            let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            rustix::mount::unmount(self.path(), flags).map_err(|error| failed(error.into()))?;
        }
        Ok(mount)
    }

    fn mount_here(&self, source: &Path, flags: SyncFlags) -> Result<FuseMount, MountError> {
        let descriptor =
            if geteuid().is_root() { self.mount_as_root(source, flags)? } else { self.mount_by_helper(source, flags)? };
        let top = TopMount::at(self.path());
        let flags = top.as_ref().and_then(TopMount::flags);
        let location = top.map(|top| MountLocation {
            point: self.path.clone(),
            mount_id: top.mount_id,
            file_system: top.file_system(),
        });
        Ok(FuseMount { device: FuseDevice::new(descriptor), location, flags })
    }

    fn mount_as_root(&self, source: &Path, wanted: SyncFlags) -> Result<OwnedFd, MountError> {
        let descriptor = device::fresh().map_err(MountError::Device)?;
        let options = format!(
            "fd={},rootmode=40000,user_id={},group_id={},allow_other,default_permissions",
            descriptor.as_raw_fd(),
            geteuid().as_raw(),
            getegid().as_raw()
        );
        let options = CString::new(options).unwrap_or_default();
        let mut flags = NewMountFlags::NOSUID | NewMountFlags::NODEV;
        flags.set(NewMountFlags::SYNCHRONOUS, wanted.sync);
        flags.set(NewMountFlags::DIRSYNC, wanted.dirsync);
        rustix::mount::mount(source, self.path(), KIND, flags, options.as_c_str())
            .map_err(|error| MountError::Point { point: self.path.clone(), source: error.into() })?;
        Ok(descriptor)
    }

    fn mount_by_helper(&self, source: &Path, flags: SyncFlags) -> Result<OwnedFd, MountError> {
        self.check_writable()?;
        let failed = |error: &dyn std::fmt::Display| MountError::Helper(error.to_string());
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
            .map_err(|error| failed(&io::Error::from(error)))?;
        // A comma would begin another option.
        let name = String::from_utf8_lossy(source.as_os_str().as_bytes()).replace(',', "_");
        let sync = if flags.sync { ",sync" } else { "" };
        let dirsync = if flags.dirsync { ",dirsync" } else { "" };
        let options = format!("nosuid,nodev{sync}{dirsync},default_permissions,subtype=afflux,fsname={name}");
        let helper = Command::new(HELPER)
            .args(["-o", &options, "--"])
            .arg(self.path())
            .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(&error))?;
        drop(theirs);
        if !helper.status.success() {
            return Err(MountError::Helper(String::from_utf8_lossy(&helper.stderr).trim().to_owned()));
        }
        received(&ours).map_err(|error| failed(&error))
    }
}

/// The descriptor that the helper sends.
fn received(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptors.next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// A mount that nobody serves yet. Dropped, it answers each call with an error.
pub struct FuseMount {
    pub(super) device: FuseDevice,
    /// None if the kernel does not show it.
    pub(super) location: Option<MountLocation>,
    pub(super) flags: Option<MountFlags>,
}

impl FuseMount {
    /// Its flags, for the machine that serves it. None if the kernel does not show the mount, or if they were taken
    /// before.
    pub fn take_flags(&mut self) -> Option<MountFlags> {
        self.flags.take()
    }

    /// The kernel's id of the mount.
    pub fn mount_id(&self) -> u64 {
        self.location.as_ref().map_or(0, |location| location.mount_id)
    }
}

/// The mount that is on top at a path, in this thread's view.
pub(super) struct TopMount {
    /// The kernel's id of the mount.
    pub(super) mount_id: u64,
    /// Major and minor number of the file system; copies of a mount have the same.
    file_system: Vec<u8>,
    pub(super) kind: Vec<u8>,
}

impl TopMount {
    pub(super) fn at(path: &Path) -> Option<Self> {
        let mounts = std::fs::read("/proc/thread-self/mountinfo").ok()?;
        let mut found = mounts.split(|byte| *byte == b'\n').filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let mount_id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            let file_system = fields.nth(1)?.to_vec();
            let is_there = unescaped(fields.nth(1)?) == path.as_os_str().as_bytes();
            let kind = fields.skip_while(|field| *field != b"-").nth(1).unwrap_or_default().to_vec();
            is_there.then_some(Self { mount_id, file_system, kind })
        });
        found.next_back()
    }

    /// The flags of the file system, in this thread's view.
    pub(super) fn flags(&self) -> Option<MountFlags> {
        MountFlags::of(self.file_system.clone()).ok()
    }

    /// Major and minor number of the file system, in one.
    pub(super) fn file_system(&self) -> u64 {
        let text = std::str::from_utf8(&self.file_system).unwrap_or_default();
        let (major, minor) = text.split_once(':').unwrap_or_default();
        major.parse::<u64>().unwrap_or_default() << 32 | minor.parse::<u64>().unwrap_or_default()
    }
}

/// Unmounts the mount with this id, if it is on top at the point. Other mounts there stay. `lazily` also
/// while programs use it: the mount then goes away with the last of them.
///
/// # Errors
/// The host refuses it: programs use the mount.
pub fn unmount(point: &Path, mount_id: u64, lazily: bool) -> io::Result<()> {
    if TopMount::at(point).is_none_or(|top| top.mount_id != mount_id) {
        return Ok(());
    }
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(point, flags | UnmountFlags::NOFOLLOW) {
        Err(Errno::PERM) => {}
        result => return Ok(result?),
    }
    let lazily = lazily.then_some("-z");
    let helper = Command::new(HELPER).arg("-u").args(lazily).arg("--").arg(point).stdin(Stdio::null()).output()?;
    match helper.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&helper.stderr).trim().to_owned())),
    }
}

/// The flags of a mount that make changes synchronous.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncFlags {
    /// Each change is durable when its call returns.
    pub sync: bool,
    /// Changes of names.
    pub dirsync: bool,
}

/// How long flags count if the kernel reports no change: it reports none that fsconfig(2) makes.
const TOLD_FOR: Duration = Duration::from_secs(1);

/// The flags of one mount.
pub struct MountFlags {
    /// Major and minor number of the file system, as the table has them.
    file_system: Vec<u8>,
    seen: Mutex<Seen>,
}

struct Seen {
    table: File,
    text: Vec<u8>,
    flags: SyncFlags,
    read_at: Option<Instant>,
}

impl MountFlags {
    /// The flags of a mount's file system, from the table of mounts in this thread's view.
    ///
    /// # Errors
    /// The kernel shows no table.
    pub(super) fn of(file_system: Vec<u8>) -> io::Result<Self> {
        let table = File::open("/proc/thread-self/mountinfo")?;
        let seen = Seen { table, text: Vec::new(), flags: SyncFlags::default(), read_at: None };
        Ok(Self { file_system, seen: Mutex::new(seen) })
    }

    /// The flags now. Those that were seen last, if the kernel does not show the table or the mount any more.
    pub fn now(&self) -> SyncFlags {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_changed() && seen.read().is_ok() {
            seen.flags = found(&seen.text, &self.file_system).unwrap_or(seen.flags);
        }
        seen.flags
    }
}

impl Seen {
    /// Whether the table may have changed since it was read.
    fn is_changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.table, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel reports each change once. So this comes first.
        let is_told = poll(&mut polled, Some(&at_once)).is_err() || !polled[0].revents().is_empty();
        is_told || self.read_at.is_none_or(|at| at.elapsed() >= TOLD_FOR)
    }

    fn read(&mut self) -> io::Result<()> {
        self.read_at = Some(Instant::now());
        self.text.clear();
        self.table.rewind()?;
        self.table.read_to_end(&mut self.text).map(drop)
    }
}

/// The flags of a file system in a table of mounts. They stand among the options of the file system itself, the last
/// field of a row.
fn found(table: &[u8], file_system: &[u8]) -> Option<SyncFlags> {
    let mut rows = table.split(|byte| *byte == b'\n').map(|row| row.split(|byte| *byte == b' '));
    let mut row = rows.find(|row| row.clone().nth(2) == Some(file_system))?;
    let mut options = row.next_back()?.split(|byte| *byte == b',');
    let dirsync = options.clone().any(|option| option == b"dirsync");
    Some(SyncFlags { sync: options.any(|option| option == b"sync"), dirsync })
}

#[cfg(test)]
mod tests;
