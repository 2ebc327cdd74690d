//! Opening directories for export.
//!
//! Owns: the checks of the directories, the errors, the list of the host's abilities.
//! Does not own: anything after the start.
//! Invariants: no exported directory is inside another, and no two have the same path for clients. No two are on disks
//! with one identity.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use afflux_volume::{DeviceKey, Export};
use rustix::fs::{
    Access, AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, accessat, fstatvfs, major, open, openat,
    openat2,
};
use rustix::io::Errno;

use super::containment::Roots;
use super::error::HostError;
use super::filesystems::FileSystems;
use super::identity::{IdentityForm, can_open_handles, form_of};
use super::marks::HostMarks;
use super::node::host_node;
use super::{Core, HostTree, limits};
use crate::device_pools::{CALLS_POOLED, DevicePools, PooledCalls};
use afflux_linux_device::{SpareDescriptors, WorkerPool, file_system_kind, stores_files};

/// The kind of our own mounts.
const MOUNT_KIND: &str = "fuse.afflux";

/// The features of the host to use: all of them, unless a test says otherwise.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Open objects by their handles if the process may. Otherwise objects are found by name.
    pub by_handle: bool,
    /// Refuse handles of files that were moved out of the exports, as handles of such directories always are. Objects
    /// are then found by name even if their handles could open them.
    pub subtree_check: bool,
    /// Refuse a directory if another server has it, or a directory above or below it.
    pub alone: bool,
    /// Most descriptors for objects and files; may be less than the process's limit allows.
    pub descriptors_max: usize,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { by_handle: true, subtree_check: false, alone: false, descriptors_max: usize::MAX }
    }
}

impl HostTree {
    /// Opens `paths` for export: one as "/", several as "/NAME" each, after the last part of their paths. Calls run on
    /// pools like `pool`, one for each file system; calls about no file system run on `pool` itself. Raises the
    /// process's limit on descriptors. Blocks.
    pub fn open(paths: &[PathBuf], pool: &WorkerPool, options: &HostOptions) -> Result<Arc<Self>, HostError> {
        let shares = limits::raise();
        let descriptors_max = shares.objects.min(options.descriptors_max);
        let real = paths.iter().map(|path| checked(path)).collect::<Result<Vec<_>, _>>()?;
        let names = names(&real)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptors =
            open("/proc/self/fd", flags, Mode::empty()).map_err(|errno| HostError::NoProc { source: errno.into() })?;
        let descriptors = Arc::new(descriptors);
        // An object opened by its handle alone has no path to check.
        let by_handle = options.by_handle && !options.subtree_check;
        let mut core = Core {
            pools: DevicePools::new(pool),
            descriptors: Arc::clone(&descriptors),
            beneath: true,
            by_handle,
            roots: Roots::new(descriptors),
            subtree_check: options.subtree_check,
            umask: OnceLock::new(),
            unnamed: OnceLock::new(),
            file_systems: FileSystems::new(real.clone()),
            spare: SpareDescriptors::new(shares.spare),
            #[cfg(test)]
            climbed: std::sync::atomic::AtomicU64::new(0),
        };
        let (mut exports, mut notes) = (Vec::new(), Vec::new());
        let marks = HostMarks::set(&real, options.alone, &mut notes)?;
        for (path, name) in real.iter().zip(names) {
            let fd = openat(CWD, path, flags, Mode::empty())
                .map_err(|errno| HostError::Open { path: path.clone(), source: errno.into() })?;
            let failed = |error| HostError::Failed { path: path.clone(), error };
            note_form(&mut notes, path, form_of(fd.as_fd()).map_err(failed)?);
            notes.extend(oddity(path, fd.as_fd()));
            core.by_handle &= can_open_handles(fd.as_fd());
            core.beneath &= has_openat2(fd.as_fd());
            let root = core.found(fd, false).map_err(failed)?;
            core.roots.add(host_node(&root.node), &root.stat).map_err(failed)?;
            if let Some(other) = copied(&core, root.stat.device, real.iter().zip(&exports)) {
                return Err(HostError::OneIdentity { path: path.clone(), other: other.clone() });
            }
            exports.push(Export { path: format!("/{name}"), root });
        }
        if !core.by_handle && by_handle {
            notes.push(
                "objects cannot be opened by handle (that takes CAP_DAC_READ_SEARCH): after a restart, \
                handles that clients hold are found again by a walk of the directory"
                    .to_owned(),
            );
        }
        if !core.beneath {
            notes.push("openat2 is missing (Linux before 5.6, or a sandbox): names are opened one at a time with O_NOFOLLOW instead".to_owned());
        }
        let sets = PooledCalls::new(CALLS_POOLED);
        Ok(Arc::new(Self {
            core: Arc::new(core),
            directories: real,
            exports,
            descriptors_max,
            notes,
            sets,
            _marks: marks,
        }))
    }
}

/// The export whose disk has the same identity as the one of `device`. File systems without a disk are only
/// distinguished: the identity of some is that of a disk below, and handles on them identify more.
fn copied<'a>(
    core: &Core,
    device: DeviceKey,
    mut exports: impl Iterator<Item = (&'a PathBuf, &'a Export)>,
) -> Option<&'a PathBuf> {
    let first = core.file_systems.twin(device).filter(|_| major(device.0) != 0)?;
    exports.find(|(_, export)| export.root.stat.device == first).map(|(path, _)| path)
}

/// What people may not expect of the file system that a directory is on.
fn oddity(path: &Path, directory: BorrowedFd<'_>) -> Option<String> {
    let path = path.display();
    if file_system_kind(directory) == MOUNT_KIND {
        return Some(format!(
            "{path} is on a mount of Afflux, so two caches lie above each other; `afflux serve DIR --mount POINT` has NFS \
             clients and programs of this host in one"
        ));
    }
    let found = fstatvfs(directory).ok()?;
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Some(format!("{path} is on a file system that is only read: every change is refused"));
    }
    (found.f_blocks > 0 && found.f_bavail == 0)
        .then(|| format!("{path} is on a full file system: new bytes are refused"))
}

/// The real path of a directory that can be read.
fn checked(path: &Path) -> Result<PathBuf, HostError> {
    let named = || path.to_owned();
    let real = std::fs::canonicalize(path).map_err(|source| HostError::Open { path: named(), source })?;
    let metadata = std::fs::metadata(&real).map_err(|source| HostError::Open { path: named(), source })?;
    if !metadata.is_dir() {
        return Err(HostError::NotADirectory { path: named() });
    }
    let opened = openat(CWD, &real, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let failed = |errno: Errno| HostError::Open { path: named(), source: errno.into() };
    let opened = opened.map_err(failed)?;
    if !stores_files(major(metadata.dev()), opened.as_fd()).map_err(failed)? {
        return Err(HostError::StoresNothing { path: named(), kind: file_system_kind(opened.as_fd()) });
    }
    match accessat(CWD, &real, Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(real),
        Err(Errno::ACCESS) => Err(HostError::NotReadable { path: named() }),
        Err(errno) => Err(HostError::Open { path: named(), source: errno.into() }),
    }
}

/// The directories' names for clients, without the slash.
fn names(paths: &[PathBuf]) -> Result<Vec<String>, HostError> {
    match paths {
        [] => return Err(HostError::Nothing),
        [_] => return Ok(vec![String::new()]),
        _ => {}
    }
    let mut names: Vec<String> = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| HostError::Nameless { path: path.clone() })?;
        for (earlier, other) in paths[..at].iter().enumerate() {
            if path.starts_with(other) {
                return Err(HostError::Nested { inner: path.clone(), outer: other.clone() });
            }
            if other.starts_with(path) {
                return Err(HostError::Nested { inner: other.clone(), outer: path.clone() });
            }
            if names[earlier] == name {
                return Err(HostError::SameName { first: other.clone(), second: path.clone(), name: name.to_owned() });
            }
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn note_form(notes: &mut Vec<String>, path: &Path, form: IdentityForm) {
    let path = path.display();
    match form {
        IdentityForm::Handle => {}
        IdentityForm::Telling | IdentityForm::Digest => notes.push(format!(
            "{path}: the file system's handles only tell objects apart: after a restart, handles that clients hold are found again by a walk"
        )),
        IdentityForm::Inode => notes.push(format!(
            "{path}: the file system gives no handles; objects are known by inode number and time of birth, so one \
             made in the same instant as another with its number was removed may be taken for it"
        )),
    }
}

fn has_openat2(root: std::os::fd::BorrowedFd<'_>) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    !matches!(openat2(root, ".", flags, Mode::empty(), ResolveFlags::BENEATH), Err(Errno::NOSYS | Errno::PERM))
}
