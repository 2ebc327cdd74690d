//! A server's own view of the mounts.
//!
//! Owns: the separation of the view from the common one, the choice of the mounts that stay in it.
//! Does not own: mounting (`mounting`), the paths that a server needs (the command).
//! Invariants: after [`OwnMounts::keep_only`] the view has two kinds of mounts from before the start. One kind leads to
//! a needed path, the other is below a served path. The propagation of the host's mounts does not change this.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, open, openat, readlinkat, statx};
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::process::{chroot, fchdir};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The server's own view of the host's mounts, without the mount that it serves. It has the mounts that the server
/// needs ([`OwnMounts::keep_only`]). Where the host's mounts are shared, others' later mounts appear there, and go when
/// they are unmounted. So the view holds no disk that the host has let go.
///
/// In the common view, `..` from a directory below a mount point leads into the mount. So a server that mounts over its
/// own directory would ask itself where its directories are.
pub struct OwnMounts {
    common: MountView,
    own: MountView,
}

/// A view of the mounts, and this process's root in it. That may be below the view's own root, as after `chroot`.
struct MountView {
    name_space: OwnedFd,
    root: OwnedFd,
}

impl MountView {
    fn of_this_process() -> io::Result<Self> {
        let name_space = open(c"/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let root = open(c"/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { name_space, root })
    }

    /// This thread has the view from now on, with the root as its working directory.
    fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.name_space.as_fd(), Some(LinkNameSpaceType::Mount))?;
        // The host has set the root to that of the view.
        fchdir(&self.root)?;
        Ok(chroot(c".")?)
    }
}

impl OwnMounts {
    /// Separates this process's view from the common one. Call it before the first thread, and before files are opened
    /// that are served.
    ///
    /// # Errors
    /// It takes root's rights.
    pub fn separate() -> io::Result<Self> {
        let common = MountView::of_this_process()?;
        // SAFETY: the process has one thread, so no thread sees two views; descriptors stay as they are.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
        let (own, directory) = (MountView::of_this_process()?, std::env::current_dir());
        // After `chroot`, this process's root may be no mount point. The view's own root is one.
        move_into_link_name_space(own.name_space.as_fd(), Some(LinkNameSpaceType::Mount))?;
        rustix::mount::mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        own.enter()?;
        directory.and_then(std::env::set_current_dir)?;
        Ok(Self { common, own })
    }

    /// The views of a rehearsal: the own view stands for the common one. Only this process sees a mount that is made
    /// there.
    ///
    /// # Errors
    /// The host's.
    pub fn rehearsing(self) -> io::Result<Self> {
        Ok(Self { common: MountView::of_this_process()?, own: self.own })
    }

    /// Makes a call in the common view.
    ///
    /// # Errors
    /// The host does not change the view.
    pub fn in_common<T>(&self, call: impl FnOnce() -> T) -> io::Result<T> {
        // A change of the view also changes the working directory.
        let directory = std::env::current_dir();
        self.common.enter()?;
        let result = call();
        self.own.enter()?;
        directory.and_then(std::env::set_current_dir)?;
        Ok(result)
    }

    /// Takes all mounts out of the own view but those that lead to the `mount_points`, and those below the `served`
    /// ones. A mount that the host does not give up stays. Call it before the second thread.
    ///
    /// # Errors
    /// The host does not show its mounts, or does not change the view.
    pub fn keep_only(&self, mount_points: &[PathBuf], served: &[PathBuf]) -> io::Result<()> {
        let directory = std::env::current_dir();
        let proc = open(c"/proc/self", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let system = SYSTEM.iter().chain(&SYSTEM_WHOLE).map(Path::new);
        let needed =
            system.chain(mount_points.iter().chain(served).map(PathBuf::as_path)).map(opened).collect::<Vec<_>>();
        let whole = SYSTEM_WHOLE.iter().map(Path::new).chain(served.iter().map(PathBuf::as_path)).map(opened);
        let whole = whole.collect::<Vec<_>>();
        // From the view's own root all its mounts are in sight.
        move_into_link_name_space(self.own.name_space.as_fd(), Some(LinkNameSpaceType::Mount))?;
        let done = (|| {
            let root = mount_id_of(&open(c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?;
            let mut mounts = MountTable::read(&proc, root)?;
            for mount_point in needed.iter().flatten() {
                mounts.keep(mount_id_of(mount_point)?);
            }
            for mount_point in whole.iter().flatten() {
                let path = readlinkat(&proc, format!("fd/{}", mount_point.as_raw_fd()), Vec::new())?;
                mounts.keep_below(Path::new(OsStr::from_bytes(path.as_bytes())));
            }
            while let Some(mount_point) = mounts.next_unneeded() {
                let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                let gone = rustix::mount::unmount(&mount_point, flags).is_ok();
                mounts.end_try(&mount_point, gone);
            }
            Ok(())
        })();
        self.own.enter()?;
        // A working directory on another disk is given up with it.
        directory.and_then(std::env::set_current_dir).or_else(|_| std::env::set_current_dir("/"))?;
        done
    }
}

/// Paths of the host that each process uses.
const SYSTEM: [&str; 3] = ["/", "/usr", "/run"];
/// Such paths with all mounts below them: file systems of the kernel, and in containers single files.
const SYSTEM_WHOLE: [&str; 4] = ["/proc", "/sys", "/dev", "/etc"];

/// A path, or the nearest directory above it that exists.
fn opened(mount_point: &Path) -> Option<OwnedFd> {
    mount_point.ancestors().find_map(|part| open(part, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok())
}

/// The id of the mount that has this file.
fn mount_id_of(file: &OwnedFd) -> io::Result<u64> {
    Ok(statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

/// A mount of the view.
struct Row {
    mount_id: u64,
    parent: u64,
    mount_point: PathBuf,
    is_needed: bool,
}

/// The mounts of a view, by the kernel's table. No mount is looked at: its server may be dead.
struct MountTable {
    /// The id of the root's mount.
    root: u64,
    /// Parents come before their children.
    rows: Vec<Row>,
}

impl MountTable {
    fn read(proc: &OwnedFd, root: u64) -> io::Result<Self> {
        let table = openat(proc, c"mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        File::from(table).read_to_end(&mut text)?;
        Ok(Self::of(&text, root))
    }

    fn of(text: &[u8], root: u64) -> Self {
        let rows = text.split(|byte| *byte == b'\n').filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let mut mount_id = || str::from_utf8(fields.next()?).ok()?.parse().ok();
            let (mount_id, parent) = (mount_id()?, mount_id()?);
            let mount_point = PathBuf::from(OsString::from_vec(unescaped(fields.nth(2)?)));
            Some(Row { mount_id, parent, mount_point, is_needed: mount_id == root })
        });
        Self { root, rows: rows.collect() }
    }

    fn row(&self, mount_id: u64) -> Option<usize> {
        self.rows.iter().position(|row| row.mount_id == mount_id)
    }

    /// The mount with this id is needed, and so are those above it.
    fn keep(&mut self, mut mount_id: u64) {
        while let Some(at) = self.row(mount_id) {
            self.rows[at].is_needed = true;
            if mount_id == self.root {
                break;
            }
            mount_id = self.rows[at].parent;
        }
    }

    /// All mounts below a directory are needed.
    fn keep_below(&mut self, directory: &Path) {
        let below = self.rows.iter().filter(|row| row.mount_point.starts_with(directory)).map(|row| row.mount_id);
        below.collect::<Vec<_>>().into_iter().for_each(|mount_id| self.keep(mount_id));
    }

    /// The mount point of the next mount to unmount. Only needed mounts lie on the path to it.
    fn next_unneeded(&self) -> Option<PathBuf> {
        let is_needed = |mount_id| self.row(mount_id).is_none_or(|at| self.rows[at].is_needed);
        let mut going = self.rows.iter().filter(|row| !row.is_needed && is_needed(row.parent));
        // Another mount may cover the mount point.
        let top = going.find_map(|row| Some(self.on_top(&row.mount_point)).filter(|top| !is_needed(*top)))?;
        self.row(top).map(|at| self.rows[at].mount_point.clone())
    }

    /// The mount at a mount point went, with all that are on it; or it stays.
    fn end_try(&mut self, mount_point: &Path, is_gone: bool) {
        let mount_id = self.on_top(mount_point);
        if is_gone { self.forget(mount_id) } else { self.keep(mount_id) }
    }

    fn forget(&mut self, mount_id: u64) {
        self.rows.retain(|row| row.mount_id != mount_id);
        while let Some(orphan) = self.rows.iter().find(|row| row.parent == mount_id).map(|row| row.mount_id) {
            self.forget(orphan);
        }
    }

    /// The mount to which a path leads.
    fn on_top(&self, path: &Path) -> u64 {
        let mut mount_id = self.root;
        let ways: Vec<&Path> = path.ancestors().collect();
        for way in ways.into_iter().rev() {
            let over = |mount_id| {
                self.rows
                    .iter()
                    .find(|row| row.parent == mount_id && row.mount_id != mount_id && row.mount_point == way)
            };
            while let Some(row) = over(mount_id) {
                mount_id = row.mount_id;
            }
        }
        mount_id
    }
}

/// A path of mountinfo: blanks, line ends and backslashes are octal numbers there.
pub(super) fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.first_chunk::<3>().filter(|_| first == b'\\');
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests;
