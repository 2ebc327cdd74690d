//! Staying below the exports: names resolved beneath a directory, directories found below a root.
//!
//! Owns: opening one name, climbing up, reopening a descriptor's object, how deep directories may lie.
//! Does not own: the use of opened objects (`entries`).
//! Invariants: a directory that was moved out of the exports is not used. Each use first finds the directory below a
//! root, and so does each answer just before its return. A name is resolved to the entry itself, never to a link's
//! target, and the entry was seen inside after it was opened.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use afflux_volume::{Found, Kind, Node, Stat, VolumeError};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::Core;
use super::calls::{self, error_of};
use super::containment::Containment;
use super::node::{HostNode, host_node};
use afflux_linux_device::reopen::open_without_waiting;
use afflux_linux_device::shortage::open_or_close_spare;

/// The most steps up: deeper directories below an export's root are refused. The kernel walks each step at each call,
/// which takes it about a millisecond at this depth.
const CLIMB_MAX: u32 = 16_384;
/// The most steps in one path: a path is bounded by 4,096 bytes, and each step takes three.
const STEPS_MAX: u32 = 1024;
/// How often openat2 is tried while renames elsewhere disturb it.
const AGAIN_MAX: u32 = 1000;
/// How often a name is looked up while its directory is moved out and in again.
const LOOKUPS_MAX: u32 = 20;

impl Core {
    /// Whether the directory is below an export now. `Stale` if not.
    pub(super) fn contained(&self, directory: &HostNode) -> Result<(), VolumeError> {
        if self.roots.is_root_node(directory) {
            return Ok(());
        }
        if let Some(depth) = directory.depth() {
            let there = self.above(directory.fd(), depth).and_then(|above| above.stat());
            if there.is_ok_and(|stat| self.roots.is_root(&stat)) {
                return Ok(());
            }
        }
        let depth = self.climb(directory)?;
        directory.set_depth(depth);
        Ok(())
    }

    /// The number of steps up to an export's root. Goes one step at a time, each from the directory of the step before.
    fn climb(&self, directory: &HostNode) -> Result<u32, VolumeError> {
        let mut at = Ancestor { opened: None, from: directory.fd(), steps_remaining: 0 };
        let mut below = None;
        for depth in 0..CLIMB_MAX {
            self.count_climbing();
            let stat = at.stat()?;
            if self.roots.is_root(&stat) {
                return Ok(depth);
            }
            let here = (stat.device, stat.fileid);
            if below == Some(here) {
                break; // The root of everything.
            }
            below = Some(here);
            self.count_climbing();
            at = Ancestor { opened: Some(at.step_up(1)?), ..at };
        }
        Err(VolumeError::Stale)
    }

    /// The directory `depth` steps up. If no single path holds that many steps, several paths lead there.
    pub(super) fn above<'a>(&self, directory: BorrowedFd<'a>, depth: u32) -> Result<Ancestor<'a>, VolumeError> {
        let mut above = Ancestor { opened: None, from: directory, steps_remaining: depth };
        while above.steps_remaining > STEPS_MAX {
            self.count_climbing();
            above = Ancestor {
                opened: Some(above.step_up(STEPS_MAX)?),
                steps_remaining: above.steps_remaining - STEPS_MAX,
                ..above
            };
        }
        self.count_climbing();
        Ok(above)
    }

    /// Counts a system call that climbs, for tests of how many there are.
    fn count_climbing(&self) {
        #[cfg(test)]
        self.climbed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    /// The directory above `directory`, if it is below an export.
    pub(super) fn parent(&self, directory: &HostNode) -> Result<Found, VolumeError> {
        if self.roots.is_root_node(directory) {
            return Err(VolumeError::Invalid { what: "an export's root has no parent" });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open_or_close_spare(|| openat(directory.fd(), "..", flags, Mode::empty())).map_err(error_of)?;
        let found = self.found(fd, false)?;
        let parent = host_node(&found.node);
        if let Some(depth) = directory.depth() {
            parent.set_depth(depth.saturating_sub(1));
        }
        self.contained(&parent)?;
        Ok(found)
    }

    /// Refuses a directory that was moved out of the exports; with `subtree_check`, also any other object that was.
    /// Call it after the host has answered and before the answer is given.
    pub(super) fn confined(&self, node: &HostNode) -> Result<(), VolumeError> {
        match node.kind() {
            Kind::Directory => self.contained(node),
            _ if self.subtree_check && !self.is_inside(node)? => Err(VolumeError::Stale),
            _ => Ok(()),
        }
    }

    /// Whether an object that is no directory is inside. One without a name is where its last name was.
    fn is_inside(&self, node: &HostNode) -> Result<bool, VolumeError> {
        match self.roots.containment(node.fd(), None) {
            Containment::Inside => Ok(true),
            Containment::Outside => Ok(false),
            Containment::Unknown => Ok(node.stat()?.links == 0 && self.roots.was_inside(node.fd())?),
        }
    }

    /// The object that `name` names in the directory; ".." is not allowed. The object had a name below an export after
    /// it was opened, wherever the directory was moved meanwhile.
    pub(super) fn lookup(&self, directory: &HostNode, name: &[u8]) -> Result<Found, VolumeError> {
        self.find(directory, name).or_else(|error| {
            // About a directory outside the exports, not even the error is reported.
            self.contained(directory)?;
            Err(error)
        })
    }

    /// As [`Core::lookup`], but the error may come from a directory outside the exports.
    pub(super) fn find(&self, directory: &HostNode, name: &[u8]) -> Result<Found, VolumeError> {
        for _ in 0..LOOKUPS_MAX {
            let Some(fd) = self.open_inside(directory, name)? else { continue };
            let found = self.found(fd, false)?;
            if let (Kind::Directory, Some(depth)) = (found.stat.kind, directory.depth()) {
                host_node(&found.node).set_depth(depth + 1);
            }
            return Ok(found);
        }
        // The object comes and goes.
        Err(VolumeError::Stale)
    }

    /// Opens one entry, and makes sure that it is not outside. `None` if this try cannot decide.
    fn open_inside(&self, directory: &HostNode, name: &[u8]) -> Result<Option<OwnedFd>, VolumeError> {
        let fd = self.open_entry(directory, name, OFlags::PATH, Mode::empty())?;
        let inside = match self.roots.containment(fd.as_fd(), Some(name)) {
            Containment::Inside => true,
            Containment::Outside => {
                self.contained(directory)?;
                // The entry is inside now, so either it was moved meanwhile or the root has another path.
                self.learn_root_above(directory)?;
                false
            }
            Containment::Unknown => {
                self.contained(directory)?;
                let again = self.open_entry(directory, name, OFlags::PATH, Mode::empty())?;
                let number = |fd: &OwnedFd| calls::stat(fd.as_fd(), "").map(|stat| (stat.device, stat.fileid));
                let same = number(&fd)? == number(&again)?;
                self.contained(directory)?;
                same
            }
        };
        Ok(inside.then_some(fd))
    }

    /// Climbing found a directory below a root, but its entry seems to be outside. Perhaps the root has another path
    /// there, for instance if its file system is mounted twice. True if this path is new.
    fn learn_root_above(&self, directory: &HostNode) -> Result<bool, VolumeError> {
        let Some(depth) = directory.depth() else { return Ok(false) };
        let root = self.above(directory.fd(), depth)?.open()?;
        if !self.roots.is_root(&calls::stat(root.as_fd(), "")?) {
            return Ok(false); // It was moved again.
        }
        self.roots.try_learn(root.as_fd())
    }

    /// Opens one entry of a directory. A symbolic link is opened as itself (O_PATH) or is an error.
    pub(super) fn open_entry(
        &self,
        directory: &HostNode,
        name: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, VolumeError> {
        check_entry(name)?;
        if directory.is_void() {
            return Err(VolumeError::NotFound);
        }
        self.learn_names(directory);
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if !self.beneath {
            // One name, no separator, not "..", no link followed: this cannot leave the directory either.
            let open = || openat(directory.fd(), name, flags, mode);
            return open_or_close_spare(open).map_err(|errno| here(directory, errno));
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        for _ in 0..AGAIN_MAX {
            match open_or_close_spare(|| openat2(directory.fd(), name, flags, mode, resolve)) {
                // Not beneath: the entry was moved away before it was open.
                Err(Errno::AGAIN | Errno::INTR | Errno::XDEV) => {}
                result => return result.map_err(|errno| here(directory, errno)),
            }
        }
        Err(VolumeError::Io { errno: Errno::AGAIN.raw_os_error() })
    }

    /// Learns whether other bytes may be the same name in a directory, before a name in it is known.
    pub(super) fn learn_names(&self, directory: &HostNode) {
        let traits = || self.file_systems.traits(directory.device());
        directory.learn_names(|| traits().is_none_or(|traits| traits.may_fold_names(directory.fd())));
    }

    /// Reopens the regular file behind a descriptor, with other flags. With other kinds of files the open might block,
    /// or worse. It does not wait for a program that has a lease on the file: the host asks that program to give it up.
    pub(super) fn reopen(&self, node: &HostNode, flags: OFlags) -> Result<OwnedFd, VolumeError> {
        let name = node.fd().as_raw_fd().to_string();
        open_without_waiting(&self.descriptors, &name, flags).map_err(|errno| match errno {
            Errno::AGAIN => VolumeError::Leased,
            errno => error_of(errno),
        })
    }

    /// An object just opened, with its attributes and its identity. `real` means opened without O_PATH.
    pub(super) fn found(&self, fd: OwnedFd, real: bool) -> Result<Found, VolumeError> {
        let (identity, stat, met) = self.identify_with_file_system(fd.as_fd())?;
        let node = HostNode::new(fd, real, &stat, met.is_void, self.pools.of(stat.device));
        Ok(Found { node: Node::new(Arc::new(node)), identity, stat })
    }
}

/// The meaning of a failed call in a directory: nothing is found in a removed one.
pub(super) fn here(directory: &HostNode, errno: Errno) -> VolumeError {
    if errno == Errno::NOENT && directory.stat().is_ok_and(|stat| stat.links == 0) {
        return VolumeError::Stale;
    }
    error_of(errno)
}

/// The volume has checked the names; this checks again that a name cannot leave its directory.
pub(super) fn check_entry(name: &[u8]) -> Result<(), VolumeError> {
    let leaves = name.is_empty() || name == b"." || name == b".." || name.iter().any(|byte| matches!(byte, b'/' | 0));
    if leaves { Err(VolumeError::Invalid { what: "not the name of an entry" }) } else { Ok(()) }
}

/// A directory some steps above another one.
pub(super) struct Ancestor<'a> {
    /// The last directory opened on the path; without one, the steps begin at `from`.
    opened: Option<OwnedFd>,
    from: BorrowedFd<'a>,
    /// The remaining steps.
    steps_remaining: u32,
}

impl Ancestor<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.opened.as_ref().map_or(self.from, AsFd::as_fd)
    }

    /// Attributes of the upper directory.
    pub(super) fn stat(&self) -> Result<Stat, VolumeError> {
        calls::stat(self.fd(), &up(self.steps_remaining))
    }

    /// Opens the upper directory.
    pub(super) fn open(&self) -> Result<OwnedFd, VolumeError> {
        self.step_up(self.steps_remaining)
    }

    /// Opens the directory `steps` further up.
    fn step_up(&self, steps: u32) -> Result<OwnedFd, VolumeError> {
        let path = if steps == 0 { ".".to_owned() } else { up(steps) };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_or_close_spare(|| openat(self.fd(), path.as_str(), flags, Mode::empty())).map_err(error_of)
    }
}

fn up(steps: u32) -> String {
    let mut path = "../".repeat(steps as usize);
    path.pop();
    path
}
