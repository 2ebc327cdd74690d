//! A directory of this process, for as long as a value lives.
//!
//! Owns: its name, its owner and mode, its removal.
//! Does not own: mounts in it. The code that mounted a file system there unmounts it.
//! Invariants: `mkdir` makes the directory, so it is new. A symbolic link is removed and not followed. A directory with
//! a mount in it stays, with the mount.

use std::collections::hash_map::RandomState;
use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, fstat, open, openat2, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::guard::Guard;

/// Names that are tried before giving up.
const TRIES: u32 = 16;

/// Argument: the directory. The shell waits two minutes for mounts in it to go.
const REMOVE: &str = r#"turns=0
while grep -qF " $1/" /proc/mounts; do
  turns=$((turns + 1)); [ $turns -lt 600 ] || exit 1
  sleep 0.2
done
rm -rf --one-file-system "$1""#;

/// A new directory of mode 0700. It is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    is_retained: bool,
    guard: Option<Guard>,
}

impl Scratch {
    /// Makes one in `directory`. Its name begins with `afflux-` and `name`.
    pub fn new(directory: &Path, name: &str) -> io::Result<Self> {
        let directory = std::path::absolute(directory)?;
        let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        for _ in 0..TRIES {
            let path = directory.join(format!("afflux-{name}-{:016x}", random()));
            result = make(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())));
            match result {
                Ok(()) => return Ok(Self { path, is_retained: false, guard: None }),
                Err(ref error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        result.map(|()| unreachable!("a success has returned"))
    }

    /// Makes one that a shell removes if this process dies first.
    pub fn guarded(directory: &Path, name: &str) -> io::Result<Self> {
        let mut scratch = Self::new(directory, name)?;
        scratch.guard = Some(Guard::new("", REMOVE, &[&scratch.path])?);
        Ok(scratch)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory where it is, for a person to look at.
    pub fn keep(mut self) -> PathBuf {
        self.is_retained = true;
        self.path.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_retained {
            let _ = remove(&self.path);
        }
        // After the removal: until then the shell has to do it if this process dies.
        drop(self.guard.take());
    }
}

/// A number that others do not guess. They could only take the name, and then another is tried.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    // Where others may rename what is ours, the path may lead elsewhere by now.
    let made = open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let found = fstat(&made)?;
    if found.st_uid != geteuid().as_raw() || found.st_mode & 0o077 != 0 {
        return Err(io::Error::other("another user replaced the directory as soon as it was made"));
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let parent = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(remove_entry(parent.as_fd(), name.as_bytes())?)
}

/// Removes a name of a directory, with all that is below it. Removes what it can, and returns the first error.
fn remove_entry(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::NOENT) => return Ok(()),
        other => return other,
    }
    // Refuses to enter a mount, also one of the same file system.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat2(parent, name, flags, Mode::empty(), ResolveFlags::NO_XDEV)?;
    let mut result = Ok(());
    // All names first: an entry that goes while the directory is read may hide another.
    let names: Vec<_> =
        Dir::read_from(&directory)?.filter_map(Result::ok).map(|it| it.file_name().to_owned()).collect();
    for name in names.iter().map(|name| name.to_bytes()).filter(|name| ![&b"."[..], b".."].contains(name)) {
        result = result.and(remove_entry(directory.as_fd(), name));
    }
    result.and(unlinkat(parent, name, AtFlags::REMOVEDIR))
}

#[cfg(test)]
mod tests;
