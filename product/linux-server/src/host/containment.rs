//! Where an open object is now: below an export, or outside.
//!
//! Owns: the host's answer about it, a path that is true at one instant; the roots' paths in such answers.
//! Does not own: the refusals that follow (`climb`).
//! Invariants: an object is `Inside` only if it had a name below an export at one instant after it was opened, however
//! directories were moved before and since. A path is compared, never opened.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_volume::{Stat, VolumeError};
use rustix::fs::readlinkat_raw;
use rustix::path::DecInt;

use super::calls::error_of;
use super::node::HostNode;

/// The longest path that the host gives.
const PATH_BYTES_MAX: usize = 4096;
/// Most paths of roots: a root has several if its file system is mounted twice.
const PATHS_MAX: usize = 64;
/// The host's suffix for the path of an object whose name was removed.
const REMOVED: &[u8] = b" (deleted)";

/// Where an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Containment {
    /// Below an export, or an export's root.
    Inside,
    Outside,
    /// The host does not report it: the name that opened the object is gone, or its path is too long.
    Unknown,
}

/// The exports' roots, by which everything below them is recognized.
pub(super) struct Roots {
    /// /proc/self/fd: it reports the path of an open object.
    descriptors: Arc<OwnedFd>,
    roots: Vec<Root>,
    /// The host's paths of the roots. The roots' own paths come first, in their order.
    paths: Mutex<Vec<Arc<[u8]>>>,
}

struct Root {
    key: (u64, u64),
    node: Arc<HostNode>,
}

impl Roots {
    pub(super) fn new(descriptors: Arc<OwnedFd>) -> Self {
        Self { descriptors, roots: Vec::new(), paths: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<[u8]>>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_root(&self, stat: &Stat) -> bool {
        self.has((stat.device.0, stat.fileid))
    }

    /// Whether an open directory is a root. An open directory retains its number, so the host is not asked.
    pub(super) fn is_root_node(&self, node: &HostNode) -> bool {
        self.has((node.device().0, node.fileid()))
    }

    fn has(&self, key: (u64, u64)) -> bool {
        self.roots.iter().any(|root| root.key == key)
    }

    fn has_above(&self, path: &[u8]) -> bool {
        self.lock().iter().any(|root| is_below(path, root))
    }

    /// Adds one more path of a root, which is open. False if it was known.
    pub(super) fn try_learn(&self, root: BorrowedFd<'_>) -> Result<bool, VolumeError> {
        let mut buffer = [MaybeUninit::uninit(); PATH_BYTES_MAX];
        let path = self.path_of(root, &mut buffer)?;
        let mut paths = self.lock();
        if paths.iter().any(|known| **known == *path) {
            return Ok(false);
        }
        if paths.len() >= PATHS_MAX.max(self.roots.len() + 1) {
            paths.pop();
        }
        paths.push(path.into());
        Ok(true)
    }

    /// Adds `node` as the root of an export.
    pub(super) fn add(&mut self, node: Arc<HostNode>, stat: &Stat) -> Result<(), VolumeError> {
        let mut buffer = [MaybeUninit::uninit(); PATH_BYTES_MAX];
        let path = self.path_of(node.fd(), &mut buffer)?;
        self.lock().push(path.into());
        self.roots.push(Root { key: (stat.device.0, stat.fileid), node });
        Ok(())
    }

    /// The containment of an open object. `name` is the name by which it was opened, if any.
    pub(super) fn containment(&self, fd: BorrowedFd<'_>, name: Option<&[u8]>) -> Containment {
        let mut buffer = [MaybeUninit::uninit(); PATH_BYTES_MAX];
        let Ok(path) = self.path_of(fd, &mut buffer) else {
            return Containment::Unknown;
        };
        // A name may end like this by itself; if it was removed, the host appends the suffix once more.
        let removed = path.ends_with(REMOVED) && name != Some(last_name(path));
        if removed || path.first() != Some(&b'/') {
            return Containment::Unknown;
        }
        if self.has_above(path) || (self.try_refresh() && self.has_above(path)) {
            return Containment::Inside;
        }
        Containment::Outside
    }

    /// Whether the last name of an object without names was below an export.
    pub(super) fn was_inside(&self, fd: BorrowedFd<'_>) -> Result<bool, VolumeError> {
        let mut buffer = [MaybeUninit::uninit(); PATH_BYTES_MAX];
        let path = self.path_of(fd, &mut buffer)?.strip_suffix(REMOVED);
        let is_inside = |path: &[u8]| self.has_above(path) || (self.try_refresh() && self.has_above(path));
        Ok(path.is_some_and(is_inside))
    }

    /// The path of an open object, at one instant: the host repeats the walk if a rename came between.
    fn path_of<'a>(
        &self,
        fd: BorrowedFd<'_>,
        buffer: &'a mut [MaybeUninit<u8>; PATH_BYTES_MAX],
    ) -> Result<&'a [u8], VolumeError> {
        let (path, _) = readlinkat_raw(&self.descriptors, DecInt::from_fd(fd), &mut buffer[..]).map_err(error_of)?;
        // A path that fills the buffer may be cut.
        if path.len() == PATH_BYTES_MAX { Err(VolumeError::NameTooLong { bytes: path.len() }) } else { Ok(path) }
    }

    /// Asks the host again for the roots' paths. False if nothing changed.
    fn try_refresh(&self) -> bool {
        let mut changed = false;
        let mut buffer = [MaybeUninit::uninit(); PATH_BYTES_MAX];
        for (at, root) in self.roots.iter().enumerate() {
            let Ok(path) = self.path_of(root.node.fd(), &mut buffer) else { continue };
            let mut paths = self.lock();
            if *paths[at] != *path {
                paths[at] = path.into();
                changed = true;
            }
        }
        changed
    }
}

fn is_below(path: &[u8], root: &[u8]) -> bool {
    match path.strip_prefix(root) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || root == b"/",
        None => false,
    }
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
