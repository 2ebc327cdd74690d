//! Identity: the kernel's file handle of an object, and back.
//!
//! Owns: the two system calls that rustix lacks, the fall-backs where they do not work.
//! Does not own: the layout of handles for clients (the volume).
//! Invariants: two objects that live at the same time never share an identity. With a kernel handle, not even two
//! objects one after the other do, since the handle holds a generation.

use std::ffi::{CStr, CString};
use std::future::poll_fn;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use afflux_volume::{DeviceKey, Found, IDENTITY_BYTES_MAX, Identified, Identity, Kind, Named, Stat, VolumeError};
use rustix::fs::{OFlags, StatxFlags};
use rustix::io::Errno;
use siphasher::sip128::{Hasher128, SipHasher24};

use super::Core;
use super::calls::{self, error_of, last_errno};
use super::climb::check_entry;
use super::filesystems::ObjectFileSystem;
use super::node::{HostNode, host_node};
use afflux_linux_device::shortage::open_or_close_spare;

/// The origin of an identity's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum IdentityForm {
    /// The kernel's handle; with the privilege, it opens the object.
    Handle = 1,
    /// The kernel's handle, good for telling objects apart only (overlayfs).
    Telling = 2,
    /// A 128-bit hash of a kernel handle that is too long.
    Digest = 3,
    /// Inode number and time of birth: cannot distinguish two objects that used one number within one tick of the
    /// host's clock.
    Inode = 4,
}

/// The largest handle that a kernel gives.
const HANDLE_BYTES_MAX: usize = 128;
/// The first pause while the host makes an object; later pauses double.
const READY_PAUSE: Duration = Duration::from_micros(20);
/// 20 µs × (2^13 - 1) = 164 ms.
const READY_TRIES_MAX: u32 = 13;
const AT_EMPTY_PATH: i32 = 0x1000;
/// Since Linux 6.5.
const AT_HANDLE_FID: i32 = 0x200;

/// `struct file_handle` with capacity for the largest handle.
#[repr(C)]
struct RawHandle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE_BYTES_MAX],
}

/// A kernel handle: its type and bytes.
struct KernelHandle {
    kind: i32,
    len: usize,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl KernelHandle {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The handle of the object called `name` (empty: the descriptor's own), and the number of its mount.
fn name_to_handle(fd: BorrowedFd<'_>, name: &CStr, flags: i32) -> Result<(KernelHandle, i32), Errno> {
    let mut raw = RawHandle { bytes: HANDLE_BYTES_MAX as u32, kind: 0, handle: [0; HANDLE_BYTES_MAX] };
    let mut mount: i32 = 0;
    // SAFETY: the name is a terminated string, `raw` a file_handle with the capacity that it states, `mount` an int.
    // All outlive the call, which retains no reference.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            fd.as_raw_fd(),
            name.as_ptr(),
            &raw mut raw,
            &raw mut mount,
            if name.is_empty() { AT_EMPTY_PATH | flags } else { flags },
        )
    };
    if result != 0 {
        return Err(last_errno());
    }
    let len = (raw.bytes as usize).min(HANDLE_BYTES_MAX);
    Ok((KernelHandle { kind: raw.kind, len, bytes: raw.handle }, mount))
}

/// Opens the object of a handle. While the host makes another object of the same number, the call fails with 'no
/// memory' (iget finds an inode that is not ready). This lasts microseconds, or until the disk has answered. The
/// function retries for at most a sixth of a second.
fn open_by_handle(mount: BorrowedFd<'_>, kind: u8, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    for doubled in 0..READY_TRIES_MAX {
        match open_or_close_spare(|| open_by_handle_once(mount, kind, bytes)) {
            Err(Errno::NOMEM) => std::thread::sleep(READY_PAUSE * (1 << doubled)),
            other => return other,
        }
    }
    open_by_handle_once(mount, kind, bytes)
}

fn open_by_handle_once(mount: BorrowedFd<'_>, kind: u8, bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let mut raw = RawHandle { bytes: bytes.len() as u32, kind: kind.into(), handle: [0; HANDLE_BYTES_MAX] };
    raw.handle[..bytes.len()].copy_from_slice(bytes);
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // SAFETY: `raw` is a file_handle of the stated length and outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags.bits()) };
    let Ok(fd) = i32::try_from(result) else {
        return Err(Errno::OVERFLOW);
    };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel has just opened the descriptor for us, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The best handle that the host gives for an object, and its form. `None` if the host gives none. Any other failure is
/// an error: with a changed form, the object would appear as a new one.
fn handle_of(fd: BorrowedFd<'_>) -> Result<Option<(IdentityForm, KernelHandle)>, VolumeError> {
    for (form, flags) in [(IdentityForm::Handle, 0), (IdentityForm::Telling, AT_HANDLE_FID)] {
        match name_to_handle(fd, c"", flags) {
            Ok((handle, _)) => return Ok(Some((form, handle))),
            // The second from hosts that do not know the flag, the third from a sandbox.
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM | Errno::NOSYS | Errno::OVERFLOW) => {}
            Err(errno) => return Err(error_of(errno)),
        }
    }
    Ok(None)
}

/// The form of identities on the file system of `fd`.
pub(super) fn form_of(fd: BorrowedFd<'_>) -> Result<IdentityForm, VolumeError> {
    Ok(handle_of(fd)?.map_or(IdentityForm::Inode, |(form, handle)| fitting(form, &handle)))
}

fn fitting(form: IdentityForm, handle: &KernelHandle) -> IdentityForm {
    let fits = handle.len <= IDENTITY_BYTES_MAX && u8::try_from(handle.kind).is_ok();
    if fits { form } else { IdentityForm::Digest }
}

/// Whether this process can open handles on the file system of `directory`.
pub(super) fn can_open_handles(directory: BorrowedFd<'_>) -> bool {
    let Ok((handle, _)) = name_to_handle(directory, c"", 0) else {
        return false;
    };
    let (Ok(mount), Ok(kind)) = (calls::open_directory(directory), u8::try_from(handle.kind)) else {
        return false;
    };
    open_by_handle(mount.as_fd(), kind, handle.bytes()).is_ok()
}

/// Opens the file systems below the exports, each on the threads of its device, until one has this id. Returns
/// descriptors on that one, and its devices. If there is none, and a file system could not be opened, returns that
/// error.
async fn meet_mounts(core: &Arc<Core>, id: u64) -> Result<Vec<(DeviceKey, Arc<OwnedFd>)>, VolumeError> {
    let looking = Arc::clone(core);
    let unmet = core.pools.common().run(move || looking.file_systems.unmet()).await?;
    let meetings = unmet.into_iter().map(|at| {
        let meeting = Arc::clone(core);
        Box::pin(core.pools.of(at.device).run(move || meeting.file_systems.meet_at(&at)))
    });
    let mut meetings: Vec<_> = meetings.collect();
    let mut failed = Ok(());
    poll_fn(|cx| {
        meetings.retain_mut(|meeting| match meeting.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(met) => {
                failed = mem::replace(&mut failed, Ok(())).and(met);
                false
            }
        });
        let found = core.file_systems.mounts(id);
        match mem::replace(&mut failed, Ok(())) {
            _ if !found.is_empty() => Poll::Ready(Ok(found)),
            result if meetings.is_empty() => Poll::Ready(result.map(|()| found)),
            result => {
                failed = result;
                Poll::Pending
            }
        }
    })
    .await
}

impl Core {
    /// Opens an object by its identity. Tries each possible file system, on the threads of that device.
    pub(super) async fn open_identity(self: Arc<Self>, identity: Identity) -> Result<Found, VolumeError> {
        if !self.may_open(&identity) {
            return Err(VolumeError::NotSupported);
        }
        let mut mounts = self.file_systems.mounts(identity.fsid());
        if mounts.is_empty() {
            mounts = meet_mounts(&self, identity.fsid()).await?;
        }
        if mounts.is_empty() {
            // It may be a part of a known file system, under an id of its own (a subvolume).
            mounts = self.file_systems.all_mounts();
        }
        for (device, mount) in mounts {
            let opening = Arc::clone(&self);
            let opened = self.pools.of(device).run(move || opening.open_on(mount.as_fd(), &identity)).await?;
            if let Some(found) = opened {
                return Ok(found);
            }
        }
        Err(VolumeError::Stale)
    }

    /// The identity and attributes of an open object.
    pub(super) fn identify(&self, fd: BorrowedFd<'_>) -> Result<(Identity, Stat), VolumeError> {
        let (identity, stat, _) = self.identify_with_file_system(fd)?;
        Ok((identity, stat))
    }

    /// As [`Core::identify`], with the object's file system.
    pub(super) fn identify_with_file_system(
        &self,
        fd: BorrowedFd<'_>,
    ) -> Result<(Identity, Stat, ObjectFileSystem), VolumeError> {
        let raw = calls::raw_stat(fd, "", StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let stat = calls::stat_of(&raw);
        let met = self.file_systems.meet(stat.device, fd, stat.kind)?;
        let fsid = met.id;
        let identity = match handle_of(fd)? {
            Some((form, handle)) => match fitting(form, &handle) {
                IdentityForm::Digest => {
                    let mut hasher = SipHasher24::new();
                    std::hash::Hasher::write(&mut hasher, &handle.kind.to_le_bytes());
                    std::hash::Hasher::write(&mut hasher, handle.bytes());
                    Identity::new(fsid, IdentityForm::Digest as u8, 0, &hasher.finish128().as_bytes())
                }
                form => Identity::new(fsid, form as u8, handle.kind as u8, handle.bytes()),
            },
            None => {
                let mut bytes = [0; 20];
                bytes[..8].copy_from_slice(&stat.fileid.to_le_bytes());
                bytes[8..16].copy_from_slice(&raw.stx_btime.tv_sec.to_le_bytes());
                bytes[16..].copy_from_slice(&raw.stx_btime.tv_nsec.to_le_bytes());
                Identity::new(fsid, IdentityForm::Inode as u8, 0, &bytes)
            }
        };
        Ok((identity, stat, met))
    }

    /// The object of a name, without opening it. The directory must be known to stay unchanged meanwhile. `None` if the
    /// host gives no short handle, or has not reported this file system yet.
    pub(super) fn named_by_path(&self, directory: BorrowedFd<'_>, name: &[u8]) -> Option<Named> {
        check_entry(name).ok()?;
        let name = CString::new(name).ok()?;
        let raw = calls::raw_stat(directory, &*name, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID).ok()?;
        let (handle, mount) = name_to_handle(directory, &name, 0).ok()?;
        if u64::try_from(mount) != Ok(raw.stx_mnt_id) || fitting(IdentityForm::Handle, &handle) != IdentityForm::Handle
        {
            return None;
        }
        let stat = calls::stat_of(&raw);
        let fsid = self.file_systems.known_id(stat.device)?;
        Some(Named {
            identity: Identity::new(fsid, IdentityForm::Handle as u8, handle.kind as u8, handle.bytes()),
            stat,
        })
    }

    /// The object of a name; `None` if the name is not there.
    pub(super) fn named(&self, directory: &HostNode, name: &[u8]) -> Result<Option<Named>, VolumeError> {
        match self.lookup(directory, name) {
            Ok(found) => Ok(Some(Named { identity: found.identity, stat: found.stat })),
            Err(VolumeError::NotFound | VolumeError::NotDirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether this process can open objects by such an identity.
    pub(super) fn may_open(&self, identity: &Identity) -> bool {
        self.by_handle && identity.form() == IdentityForm::Handle as u8
    }

    /// The object of an identity, if it is on the file system of `mount`.
    pub(super) fn open_on(&self, mount: BorrowedFd<'_>, identity: &Identity) -> Result<Option<Found>, VolumeError> {
        match open_by_handle(mount, identity.kind(), identity.bytes()) {
            Ok(fd) => self.accept(fd, identity),
            Err(Errno::PERM) => Err(VolumeError::NotSupported),
            Err(Errno::STALE | Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(error_of(errno)),
        }
    }

    /// Accepts an opened handle if it is the object, lives and, for a directory, is in an export. An object without a
    /// name lives if the service manager stores it.
    fn accept(&self, fd: OwnedFd, identity: &Identity) -> Result<Option<Found>, VolumeError> {
        let found = self.found(fd, false)?;
        if found.identity != *identity || found.stat.links == 0 && !self.has_stored_unnamed(identity) {
            return Ok(None);
        }
        self.confined(&host_node(&found.node))?;
        Ok(Some(found))
    }

    /// The entries of a directory with their objects; entries that are removed meanwhile are omitted.
    pub(super) fn identities(&self, directory: &HostNode) -> Result<Vec<Identified>, VolumeError> {
        let mut names = Vec::new();
        directory.each_entry(|name, _, _| names.push(bytes::Bytes::copy_from_slice(name)))?;
        let mut identified = Vec::with_capacity(names.len());
        for name in names {
            if let Some(Named { identity, stat }) = self.named(directory, &name)? {
                identified.push(Identified { name, identity, directory: stat.kind == Kind::Directory });
            }
        }
        Ok(identified)
    }
}
