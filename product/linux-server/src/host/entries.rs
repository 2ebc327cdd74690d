//! Operations on the host's objects, each a few calls on one thread of the pool.
//!
//! Owns: making, also without a name, removing, renaming, linking, changing attributes, opening bytes, syncing.
//! Does not own: which of these operations may run side by side (the volume sees to that).
//! Invariants: a directory's attributes before and after a change are taken in the same piece of work. A new object
//! that cannot be made as requested, or that landed outside, is removed again. A directory is found below an export
//! before anything is changed in it and, where something was made, afterwards. Only the descriptor leads to a file
//! without a name (O_TMPFILE), so a creation that fails leaves nothing behind.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use afflux_engine::Backing;
use afflux_linux_device::plain_user::PlainUser;
use afflux_linux_device::pool::begin_next_call;
use afflux_linux_device::reopen::make_read_only;
use afflux_linux_device::shortage::open_or_close_spare;
use afflux_volume::{
    AttributeChange, Change, Created, Found, Identity, Kind, Linked, New, OpenedData, Removed, RenameHow, Renamed,
    Seek, SetTime, SpecialKind, Stable, Stat, Unnamed, VolumeError,
};
use rustix::fs::{
    Access, AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RenameFlags, SeekFrom, Timespec, Timestamps,
    UTIME_NOW, UTIME_OMIT, Uid, accessat, chmodat, chownat, fallocate, fchmod, fsync, linkat, makedev, mkdirat,
    mknodat, openat, renameat_with, seek, symlinkat, syncfs, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::host::Core;
use crate::host::acting::Acting;
use crate::host::calls::{self, error_of};
use crate::host::climb::{check_entry, here};
use crate::host::node::{HostNode, host_node};
use crate::host::stable::SyncScope;
use crate::host::undo::CreatedObject;
use crate::host::xattrs::has_default_acl;

/// Permission bits of new objects when the client requests none.
pub(super) const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;
const SET_GROUP: u32 = 0o2000;

/// The meaning of a host's refusal of a rename, where it has another meaning than elsewhere.
pub(super) fn rename_refusal(errno: Errno, how: RenameHow, is_over_directory: bool) -> Option<VolumeError> {
    match (errno, how) {
        (Errno::EXIST, RenameHow::NoReplace | RenameHow::Whiteout { may_replace: false }) => Some(VolumeError::Exists),
        // POSIX lets a host report 'exists' for 'not empty'. On FAT the error also means an equal name.
        (Errno::EXIST, _) if is_over_directory => Some(VolumeError::NotEmpty),
        (Errno::INVAL, RenameHow::Replace) => Some(VolumeError::Invalid { what: INTO_ITSELF }),
        (Errno::INVAL, _) => Some(VolumeError::Invalid { what: INTO_ITSELF_OR_UNKNOWN }),
        _ => None,
    }
}

/// The attributes of a new object in a directory. The host applies the default access control list, if there is one.
pub(super) fn for_new(parent: &HostNode, wanted: &AttributeChange) -> Result<AttributeChange, VolumeError> {
    Ok(wanted.for_new(wanted.is_masked() && has_default_acl(parent)?))
}

impl Core {
    pub(super) fn create(
        &self,
        parent: &HostNode,
        acting: &Acting,
        name: &[u8],
        new: &New,
        attributes: &AttributeChange,
    ) -> Result<Created, VolumeError> {
        check_entry(name)?;
        parent.check_storing()?;
        self.contained(parent)?;
        let attributes = &for_new(parent, attributes)?;
        let before = parent.stat()?;
        let made = self.make(parent, acting, name, new, attributes.mode)?;
        let identity = made.as_ref().ok().filter(|_| matches!(new, New::Regular)).map(|found| found.identity);
        let finished = made.and_then(|found| self.finish(found, acting, new, attributes)).and_then(|finished| {
            acting.note().made(&finished.0.identity);
            // The parent may have been moved out after the first check.
            self.contained(parent)?;
            Ok(finished)
        });
        match finished {
            Ok((found, data)) => {
                let parent = Change { before, after: parent.stat()? };
                Ok(Created { found, data, parent, stable: Stable::not_begun() })
            }
            Err(error) => {
                self.take_back(parent, name, &CreatedObject::Object(new, identity));
                Err(error)
            }
        }
    }

    /// Makes an object with a mode. The outer error: no object was made. The inner error: the new object cannot be
    /// found.
    fn make(
        &self,
        parent: &HostNode,
        acting: &Acting,
        name: &[u8],
        new: &New,
        mode: Option<u32>,
    ) -> Result<Result<Found, VolumeError>, VolumeError> {
        let mode = |default| Mode::from_raw_mode(mode.unwrap_or(default));
        match new {
            New::Regular => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
                let fd = acting.call(|| self.open_entry(parent, name, flags, mode(FILE_MODE)))?;
                return Ok(self.found(fd, true));
            }
            New::Directory => {
                let mode = mode(DIRECTORY_MODE);
                acting.call(|| mkdirat(parent.fd(), name, mode).map_err(|errno| here(parent, errno)))?;
            }
            New::Symlink { target } => {
                acting.call(|| symlinkat(&target[..], parent.fd(), name).map_err(|errno| here(parent, errno)))?;
            }
            New::Special(special) => {
                let (kind, device) = match *special {
                    SpecialKind::Fifo => (FileType::Fifo, 0),
                    SpecialKind::Socket => (FileType::Socket, 0),
                    SpecialKind::CharDevice { major, minor } => (FileType::CharacterDevice, makedev(major, minor)),
                    SpecialKind::BlockDevice { major, minor } => (FileType::BlockDevice, makedev(major, minor)),
                };
                let result = || mknodat(parent.fd(), name, kind, mode(FILE_MODE), device);
                acting.call(|| {
                    result().map_err(|errno| match errno {
                        Errno::INVAL => VolumeError::NotSupported,
                        errno => here(parent, errno),
                    })
                })?;
            }
        }
        Ok(self.lookup(parent, name))
    }

    /// Gives a new object the requested attributes, and opens a file's bytes.
    pub(super) fn finish(
        &self,
        mut found: Found,
        acting: &Acting,
        new: &New,
        attributes: &AttributeChange,
    ) -> Result<(Found, Option<OpenedData>), VolumeError> {
        let node = host_node(&found.node);
        let mut change = *attributes;
        if acting.user().is_some_and(|user| !user.is_root()) {
            // A new object belongs to its user, whatever the call requests, as with Linux's server.
            (change.uid, change.gid) = (None, None);
        }
        // A change of the owner may clear mode bits, too.
        let owned = change.uid.is_some() || change.gid.is_some();
        let symlink = matches!(new, New::Symlink { .. });
        change.mode = change.mode.map(|mode| self.finished_mode(mode, &found.stat));
        change.mode = change.mode.filter(|mode| !symlink && (owned || *mode != found.stat.mode));
        if change != AttributeChange::default() {
            self.apply(&node, acting, &change)?;
            found.stat = self.keep_inherited(&node, &found.stat, node.stat()?)?;
        }
        let data = match new {
            New::Regular => {
                let fd = node.shared_fd().ok_or(VolumeError::Stale)?;
                Some(OpenedData {
                    backing: Backing::new(node.data(&self.spare, fd, true, &found.stat)),
                    stat: found.stat,
                    writable: true,
                })
            }
            _ => None,
        };
        Ok((found, data))
    }

    /// A user outside the group of a new directory loses its inherited setgid bit with a change of the mode. The server
    /// sets the bit again, if the host lets it.
    fn keep_inherited(&self, node: &HostNode, made: &Stat, finished: Stat) -> Result<Stat, VolumeError> {
        if made.kind != Kind::Directory || made.mode & !finished.mode & SET_GROUP == 0 {
            return Ok(finished);
        }
        let stored = AttributeChange { mode: Some(finished.mode | SET_GROUP), ..AttributeChange::default() };
        let _ = self.apply(node, &Acting::server(), &stored);
        node.stat()
    }

    /// The final mode of a new object that was made with `wanted`. It gets back the bits that the process's mask took.
    /// If further bits are missing, the parent's default access control list cleared them, and the permissions stay as
    /// made. A directory retains the setgid bit that it inherited.
    fn finished_mode(&self, wanted: u32, made: &Stat) -> u32 {
        const PERMISSIONS: u32 = 0o777;
        let missing = wanted & PERMISSIONS & !made.mode;
        let permissions = if missing & !self.umask() == 0 { wanted } else { made.mode } & PERMISSIONS;
        let inherited = if made.kind == Kind::Directory { made.mode & SET_GROUP } else { 0 };
        permissions | wanted & !PERMISSIONS | inherited
    }

    /// The process's mode mask, as the host reports it: umask(2) would set it for a moment. If it is not reported, the
    /// mask counts as empty.
    fn umask(&self) -> u32 {
        *self.umask.get_or_init(|| {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let row = status.lines().find_map(|line| line.strip_prefix("Umask:"));
            row.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0)
        })
    }

    pub(super) fn remove(
        &self,
        parent: &HostNode,
        acting: &Acting,
        name: &[u8],
        directory_wanted: bool,
    ) -> Result<Removed, VolumeError> {
        self.contained(parent)?;
        let found = self.lookup(parent, name)?;
        let flags = if directory_wanted { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let before = parent.stat()?;
        acting.call(|| {
            unlinkat(parent.fd(), name, flags).map_err(|errno| match errno {
                // POSIX lets a host report 'exists' for 'not empty'.
                Errno::EXIST => VolumeError::NotEmpty,
                errno => here(parent, errno),
            })
        })?;
        acting.note().done();
        let stat = stat_without_name(&found);
        let parent = Change { before, after: parent.stat()? };
        Ok(Removed { identity: found.identity, stat, parent, stable: Stable::not_begun() })
    }

    pub(super) fn rename(
        &self,
        acting: &Acting,
        from: &HostNode,
        from_name: &[u8],
        to: &HostNode,
        to_name: &[u8],
        how: RenameHow,
    ) -> Result<Renamed, VolumeError> {
        check_entry(to_name)?;
        to.check_storing()?;
        let one = std::ptr::eq(from, to);
        self.contained(from)?;
        if !one {
            self.contained(to)?;
        }
        let moved = self.lookup(from, from_name)?;
        let replaced = match self.find(to, to_name) {
            Ok(found) => Some(found),
            // The directory was found inside before, and is checked again once the name is taken.
            Err(VolumeError::NotFound) => None,
            Err(error) => {
                self.contained(to)?;
                return Err(error);
            }
        };
        let is_other = |found: &Found| found.identity != moved.identity && found.stat.kind == Kind::Directory;
        let is_over_directory = replaced.as_ref().is_some_and(is_other);
        let stat_both = || -> Result<_, VolumeError> {
            let stat = from.stat()?;
            Ok((stat, if one { stat } else { to.stat()? }))
        };
        let (from_before, to_before) = stat_both()?;
        acting.call(|| {
            let flags = flags_of(how);
            renameat_with(from.fd(), from_name, to.fd(), to_name, flags)
                .map_err(|errno| rename_refusal(errno, how, is_over_directory).unwrap_or_else(|| here(from, errno)))
        })?;
        acting.note().done();
        // A local program may have taken the new name since it was looked up.
        let exchanged = if how == RenameHow::Exchange { self.find(from, from_name).ok() } else { None };
        let replaced = exchanged.or(replaced);
        match (&replaced, how) {
            (Some(other), RenameHow::Exchange) => self.both_inside((from, from_name), (to, to_name), &moved, other)?,
            (_, RenameHow::Whiteout { .. }) => {
                let whiteout = self.find(from, from_name).ok().map(|found| found.identity);
                self.still_inside((from, from_name), (to, to_name), &moved, whiteout)?;
            }
            _ => self.still_inside((from, from_name), (to, to_name), &moved, None)?,
        }
        let moved_after = host_node(&moved.node).stat()?;
        let replaced_after = |found: &Found| -> Result<_, VolumeError> {
            let stat = match how {
                RenameHow::Exchange => host_node(&found.node).stat()?,
                _ => stat_without_name(found),
            };
            Ok((found.identity, stat))
        };
        // Both names are of one object: the host retains both.
        let replaced = replaced.filter(|found| found.identity != moved.identity);
        let (from_after, to_after) = stat_both()?;
        Ok(Renamed {
            moved: (moved.identity, moved_after),
            replaced: replaced.as_ref().map(replaced_after).transpose()?,
            from: Change { before: from_before, after: from_after },
            to: Change { before: to_before, after: to_after },
            stable: Stable::not_begun(),
        })
    }

    /// Checks after a rename that the object is inside under its new name; otherwise moves it back to its old name,
    /// where a whiteout may be.
    fn still_inside(
        &self,
        from: (&HostNode, &[u8]),
        to: (&HostNode, &[u8]),
        moved: &Found,
        whiteout: Option<Identity>,
    ) -> Result<(), VolumeError> {
        let move_back = || match whiteout {
            Some(whiteout) => self.move_back_over(from, to, whiteout),
            None => self.move_back(from, to),
        };
        let is_moved = || {
            let fd = self.open_entry(to.0, to.1, OFlags::PATH, Mode::empty()).ok()?;
            self.identify(fd.as_fd()).ok().filter(|(identity, _)| *identity == moved.identity)
        };
        if self.contained(to.0).is_err() {
            // The target directory was moved out together with the object.
            if is_moved().is_some() {
                move_back();
            }
            return Err(VolumeError::Stale);
        }
        if !std::ptr::eq(from.0, to.0) && self.contained(from.0).is_err() && is_moved().is_none() {
            // The source directory was moved out, and its name now led to another object: this object was moved in.
            move_back();
            return Err(VolumeError::Stale);
        }
        Ok(())
    }

    /// As [`Core::still_inside`], after an exchange of two objects.
    fn both_inside(
        &self,
        from: (&HostNode, &[u8]),
        to: (&HostNode, &[u8]),
        moved: &Found,
        other: &Found,
    ) -> Result<(), VolumeError> {
        let inside = self.contained(to.0).is_ok() && (std::ptr::eq(from.0, to.0) || self.contained(from.0).is_ok());
        if inside {
            return Ok(());
        }
        let has = |(directory, name): (&HostNode, &[u8]), object: &Found| {
            let fd = self.open_entry(directory, name, OFlags::PATH, Mode::empty()).ok()?;
            self.identify(fd.as_fd()).ok().filter(|(identity, _)| *identity == object.identity)
        };
        if has(from, other).is_some() && has(to, moved).is_some() {
            self.exchange_back(from, to);
        }
        Err(VolumeError::Stale)
    }

    pub(super) fn link(
        &self,
        acting: &Acting,
        node: &HostNode,
        parent: &HostNode,
        name: &[u8],
    ) -> Result<Linked, VolumeError> {
        check_entry(name)?;
        parent.check_storing()?;
        self.contained(parent)?;
        let before = parent.stat()?;
        let held = node.fd().as_raw_fd().to_string();
        acting.call(|| {
            linkat(&self.descriptors, held, parent.fd(), name, AtFlags::SYMLINK_FOLLOW).map_err(|errno| match errno {
                // The object lost its last name meanwhile.
                Errno::NOENT if node.stat().is_ok_and(|stat| stat.links == 0) => VolumeError::Stale,
                errno => here(parent, errno),
            })
        })?;
        acting.note().done();
        if let Err(error) = self.contained(parent) {
            let (identity, _) = self.identify(node.fd())?;
            self.take_back(parent, name, &CreatedObject::Name(identity));
            return Err(error);
        }
        let parent = Change { before, after: parent.stat()? };
        Ok(Linked { stat: node.stat()?, parent, stable: Stable::not_begun() })
    }

    /// Passes on the host's answer about an object, if the object may still be used.
    pub(super) fn checked_answer<T>(&self, node: &HostNode, answer: Result<T, VolumeError>) -> Result<T, VolumeError> {
        self.confined(node)?;
        answer
    }

    pub(super) fn stat(&self, node: &HostNode) -> Result<Stat, VolumeError> {
        self.checked_answer(node, node.stat())
    }

    /// Changes owner, mode and times, in this order: a new owner clears mode bits.
    pub(super) fn apply(&self, node: &HostNode, acting: &Acting, change: &AttributeChange) -> Result<(), VolumeError> {
        assert!(change.size.is_none(), "sizes are the engine's");
        node.check_storing()?;
        acting.call(|| self.apply_now(node, acting, change))
    }

    fn apply_now(&self, node: &HostNode, acting: &Acting, change: &AttributeChange) -> Result<(), VolumeError> {
        if change.uid.is_some() || change.gid.is_some() {
            let (uid, gid) = (change.uid.map(Uid::from_raw), change.gid.map(Gid::from_raw));
            let (stat, set) = (node.stat()?, || chownat(node.fd(), "", uid, gid, AtFlags::EMPTY_PATH));
            // The bit may give no privilege, and then root retains it.
            let changed = if stat.mode & SET_GROUP != 0 { acting.call_in_group(stat.gid, set) } else { set() };
            changed.map_err(error_of)?;
        }
        // Linux has no permission bits on symbolic links; setting them is no error.
        if let Some(mode) = change.mode.filter(|_| node.kind() != Kind::Symlink) {
            let mode = Mode::from_raw_mode(mode);
            let set = || {
                if node.is_real() {
                    return fchmod(node.fd(), mode);
                }
                chmodat(&self.descriptors, node.fd().as_raw_fd().to_string(), mode, AtFlags::empty())
            };
            let changed = if mode.contains(Mode::SGID) { acting.call_in_group(node.stat()?.gid, set) } else { set() };
            changed.map_err(error_of)?;
        }
        if change.atime != SetTime::Keep || change.mtime != SetTime::Keep {
            let times = Timestamps { last_access: time_of(change.atime), last_modification: time_of(change.mtime) };
            utimensat(node.fd(), "", &times, AtFlags::EMPTY_PATH).map_err(error_of)?;
        }
        Ok(())
    }

    pub(super) fn access(&self, node: &HostNode, acting: &Acting) -> Result<u8, VolumeError> {
        if node.kind() == Kind::Symlink {
            return Ok(7);
        }
        acting.call(|| self.access_now(node))
    }

    fn access_now(&self, node: &HostNode) -> Result<u8, VolumeError> {
        let held = node.fd().as_raw_fd().to_string();
        let mut rights = 0;
        for (right, wanted) in [(1, Access::READ_OK), (2, Access::WRITE_OK), (4, Access::EXEC_OK)] {
            match accessat(&self.descriptors, held.as_str(), wanted, AtFlags::EACCESS) {
                Ok(()) => rights |= right,
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY) => {}
                Err(errno) => return Err(error_of(errno)),
            }
        }
        Ok(rights)
    }

    /// Opens a file's bytes, as the caller: read-only unless a write needs more. So the host can run a program
    /// meanwhile that clients only read.
    pub(super) fn open_data(
        &self,
        node: &HostNode,
        acting: &Acting,
        must_write: bool,
    ) -> Result<OpenedData, VolumeError> {
        let access = if must_write { OFlags::RDWR } else { OFlags::RDONLY };
        let fd = match acting.call(|| self.reopen(node, access)) {
            Err(VolumeError::Denied | VolumeError::NotPermitted) if self.opened_before(node, acting, must_write)? => {
                self.reopen(node, access)?
            }
            opened => opened?,
        };
        let stat = calls::stat(fd.as_fd(), "")?;
        let backing = Backing::new(node.data(&self.spare, Arc::new(fd), must_write, &stat));
        Ok(OpenedData { backing, stat, writable: must_write })
    }

    /// Has a file open only for reading. Programs of the host see no writer any more.
    pub(super) fn stop_writing(&self, node: &HostNode) -> Result<(), VolumeError> {
        if let Some(file) = node.opened_data() {
            file.stop_writing().map_err(error_of)?;
        }
        // The descriptor of a file that was made here can write.
        node.shared_fd().map_or(Ok(()), |fd| make_read_only(&fd)).map_err(error_of)
    }

    /// Whether a user may use a file that a program on the host could not open now. A server knows nothing of open
    /// files: the owner may have opened it before its mode was set, and who may execute it reads it (RFC 1813, section
    /// 4.4). The server opens for reading and writing what a user may write alone.
    fn opened_before(&self, node: &HostNode, acting: &Acting, must_write: bool) -> Result<bool, VolumeError> {
        let Some(user) = acting.user() else { return Ok(false) };
        let executes = || acting.call(|| self.access_now(node)).map(|rights| rights & 4 != 0);
        let only_writes = || acting.call(|| self.reopen(node, OFlags::WRONLY)).is_ok();
        Ok(node.stat()?.uid == user.uid || if must_write { only_writes() } else { executes()? })
    }

    /// Asks the host where a file has data, through a descriptor of its own.
    pub(super) fn seek(&self, node: &HostNode, from: u64, wanted: Seek) -> Result<Option<u64>, VolumeError> {
        let fd = self.reopen(node, OFlags::RDONLY)?;
        let to = match wanted {
            Seek::Data => SeekFrom::Data(from),
            Seek::Hole => SeekFrom::Hole(from),
        };
        match seek(&fd, to) {
            Ok(at) => Ok(Some(at)),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL) => Err(VolumeError::NotSupported),
            Err(errno) => Err(error_of(errno)),
        }
    }

    /// Gives a file the space of a range; other users' files get none of the blocks reserved for root. If too little is
    /// free for the bytes past the file's end, nothing changes: ext4 gives a file all remaining space before it refuses
    /// the rest.
    pub(super) fn reserve(&self, node: &HostNode, range: Range<u64>) -> Result<(), VolumeError> {
        let fd = self.reopen(node, OFlags::RDWR)?;
        let is_roots = node.is_roots()?;
        let (stat, space) = (node.stat()?, calls::space(node.fd())?);
        let past_end = range.end.saturating_sub(range.start.max(stat.size));
        let free = if is_roots { space.free_bytes } else { space.available_bytes };
        // Earlier reservations may be all that the file uses.
        if past_end.saturating_sub(stat.used) > free {
            return Err(VolumeError::NoSpace);
        }
        let _plain = if is_roots { None } else { PlainUser::begin() };
        fallocate(fd, FallocateFlags::KEEP_SIZE, range.start, range.end - range.start).map_err(error_of)
    }

    /// Makes attributes, and a directory's entries, durable.
    pub(super) fn sync(&self, node: &HostNode) -> Result<(), VolumeError> {
        let opened = match node.kind() {
            _ if node.is_void() => return Ok(()),
            _ if node.is_real() => return fsync(node.fd()).map_err(error_of),
            Kind::Directory => calls::open_directory(node.fd()),
            Kind::Regular => self.reopen(node, OFlags::RDONLY),
            // Every open of it has side effects.
            _ => Err(VolumeError::Denied),
        };
        match opened {
            Ok(fd) => fsync(fd).map_err(error_of),
            Err(VolumeError::Denied | VolumeError::NotPermitted | VolumeError::Leased) => {
                match self.file_systems.mount(node.device()) {
                    Some(mount) => syncfs(mount).map_err(error_of),
                    None => Err(VolumeError::Denied),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Makes changed objects durable, in the order of their changes, by this file system's kind and directory.
    pub(super) fn sync_all(
        &self,
        covers: SyncScope,
        directory: &OwnedFd,
        changed: &[Arc<HostNode>],
    ) -> Result<(), VolumeError> {
        if covers == SyncScope::Everything {
            return fsync(directory.as_fd()).map_err(error_of);
        }
        changed.iter().rev().try_for_each(|node| {
            begin_next_call();
            self.sync(node)
        })
    }
}

/// The attributes of an object that has just lost a name. Some file systems in user space know nothing of an object
/// without names, although it is open.
fn stat_without_name(found: &Found) -> Stat {
    host_node(&found.node).stat().unwrap_or_else(|_| {
        let left = if found.stat.kind == Kind::Directory { 0 } else { found.stat.links.saturating_sub(1) };
        Stat { links: left, ..found.stat }
    })
}

const INTO_ITSELF: &str = "a directory cannot be moved into itself";
const INTO_ITSELF_OR_UNKNOWN: &str = "a directory cannot be moved into itself, and not every file system can exchange names, refuse to replace or make whiteouts";

fn flags_of(how: RenameHow) -> RenameFlags {
    match how {
        RenameHow::Replace => RenameFlags::empty(),
        RenameHow::NoReplace => RenameFlags::NOREPLACE,
        RenameHow::Exchange => RenameFlags::EXCHANGE,
        RenameHow::Whiteout { may_replace: true } => RenameFlags::WHITEOUT,
        RenameHow::Whiteout { may_replace: false } => RenameFlags::WHITEOUT | RenameFlags::NOREPLACE,
    }
}

fn time_of(time: SetTime) -> Timespec {
    match time {
        SetTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        SetTime::ServerNow => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        SetTime::To(time) => Timespec { tv_sec: time.seconds, tv_nsec: time.nanos.into() },
    }
}

impl Core {
    pub(super) fn create_unnamed(
        &self,
        parent: &HostNode,
        acting: &Acting,
        attributes: &AttributeChange,
    ) -> Result<Unnamed, VolumeError> {
        parent.check_storing()?;
        self.contained(parent)?;
        let attributes = &for_new(parent, attributes)?;
        let mode = Mode::from_raw_mode(attributes.mode.unwrap_or(FILE_MODE));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let made = || {
            open_or_close_spare(|| openat(parent.fd(), ".", flags, mode)).map_err(|errno| match errno {
                // A file system without such files; EISDIR from one that does not even know the flag.
                Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL => VolumeError::NotSupported,
                errno => here(parent, errno),
            })
        };
        let found = self.found(acting.call(made)?, true)?;
        let (found, data) = self.finish(found, acting, &New::Regular, attributes)?;
        self.contained(parent)?;
        let data = data.ok_or(VolumeError::NotSupported)?;
        Ok(Unnamed { found, data })
    }
}
