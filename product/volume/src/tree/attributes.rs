//! Attributes as clients see them, what changes them, and the moment before and after a change.
//!
//! Owns: the plain types, and how a time moves forward.
//! Does not own: where the values come from (`objects::inode`), or how a protocol writes them.
//! Invariants: a time given to a client for its own change is later than the one before it.

use afflux_engine::WallNanos;

use super::directory::Stat;
use super::identity::Identity;

use crate::error::VolumeError;

/// A time of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Nanoseconds in the second: 0 to 999,999,999.
    pub nanos: u32,
}

impl Timestamp {
    const SECOND_NANOS: u32 = 1_000_000_000;

    /// The wall clock's time.
    pub fn from_wall(now: WallNanos) -> Self {
        let second = i128::from(Self::SECOND_NANOS);
        Self {
            seconds: i64::try_from(now.0.div_euclid(second)).unwrap_or(i64::MAX),
            nanos: now.0.rem_euclid(second) as u32,
        }
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub fn as_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(Self::SECOND_NANOS) + i128::from(self.nanos)
    }

    /// The first time that is no earlier and of which every file system keeps all.
    pub(crate) fn next_even_second(self) -> Self {
        let up = self.seconds.saturating_add(i64::from(self.nanos > 0));
        Self { seconds: up.saturating_add(up & 1), nanos: 0 }
    }

    /// This time, or the nanosecond after `before` where that is later.
    #[must_use]
    pub fn moved_past(self, before: Self) -> Self {
        let next = if before.nanos + 1 < Self::SECOND_NANOS {
            Self { seconds: before.seconds, nanos: before.nanos + 1 }
        } else {
            Self { seconds: before.seconds.saturating_add(1), nanos: 0 }
        };
        self.max(next)
    }
}

/// The mode bits by which whoever runs a file acts as its owner or its group.
const PRIVILEGES: u32 = 0o6000;

/// A mode without the bits that let whoever runs the file act as its owner or its group. Kernels leave the group's bit
/// to a writer of that group where the group may not execute the file; then it says nothing.
pub(crate) fn without_privileges(mode: u32) -> u32 {
    mode & !PRIVILEGES
}

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// A file with bytes.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link; never followed here.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// What is known of an object, unwritten data included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// The permission bits: 0 to 0o7777.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of storage it takes; an estimate while data is unwritten.
    pub used: u64,
    /// Major number of a device.
    pub device_major: u32,
    /// Minor number of a device.
    pub device_minor: u32,
    /// The file system it is on; the same after a restart where the host's file system has an id.
    pub fsid: u64,
    /// Its number in the file system; never 0.
    pub fileid: u64,
    /// When it was last read, as the host keeps it; reads from the cache do not move it.
    pub atime: Timestamp,
    /// When its bytes, or a directory's entries, last changed.
    pub mtime: Timestamp,
    /// When anything of it last changed.
    pub ctime: Timestamp,
}

impl Attributes {
    /// Those of an object of which nothing is unwritten.
    pub(crate) fn of_host(identity: &Identity, stat: &Stat) -> Self {
        Self {
            kind: stat.kind,
            mode: stat.mode,
            links: stat.links,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size,
            used: stat.used,
            device_major: stat.device_major,
            device_minor: stat.device_minor,
            fsid: identity.fsid(),
            fileid: stat.fileid,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
        }
    }
}

/// What weak cache consistency needs of the moment before an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    /// The size in bytes.
    pub size: u64,
    /// The modification time.
    pub mtime: Timestamp,
    /// The change time.
    pub ctime: Timestamp,
}

/// An object's attributes on either side of an operation, with no other operation of ours on the
/// object in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Consistency {
    /// Right before.
    pub before: Option<Before>,
    /// Right after.
    pub after: Option<Attributes>,
}

impl Consistency {
    /// This change and the `next` of the same object as one; without a before where others changed the
    /// object in between, since clients would take that change for their own.
    pub(crate) fn then(self, next: Self) -> Self {
        let joined = match (self.after, next.before) {
            (Some(after), Some(before)) => {
                (after.size, after.mtime, after.ctime) == (before.size, before.mtime, before.ctime)
            }
            _ => false,
        };
        Self { before: self.before.filter(|_| joined), after: next.after }
    }
}

/// What came of an operation that changes an object, and the object before and after it.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// What came of it.
    pub result: Result<T, VolumeError>,
    /// The changed object's attributes; a directory's where names were changed. Given for failures
    /// too, where they could be had.
    pub consistency: Consistency,
}

impl<T> Outcome<T> {
    pub(crate) fn failed(error: VolumeError) -> Self {
        Self { result: Err(error), consistency: Consistency::default() }
    }
}

/// What becomes of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetTime {
    /// It stays.
    #[default]
    Keep,
    /// It becomes the server's time.
    ServerNow,
    /// It becomes this.
    To(Timestamp),
}

/// What to change of an object's attributes; the default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AttributeChange {
    /// New permission bits, 0 to 0o7777.
    pub mode: Option<u32>,
    /// New owner; any but `u32::MAX`, which is nobody's: hosts take it for "no change".
    pub uid: Option<u32>,
    /// New group, likewise.
    pub gid: Option<u32>,
    /// New size, of a regular file.
    pub size: Option<u64>,
    /// The access time.
    pub atime: SetTime,
    /// The modification time.
    pub mtime: SetTime,
}

impl AttributeChange {
    /// Refuses what no object can have. A size is looked at by whoever knows the object.
    pub(crate) fn check(&self) -> Result<(), VolumeError> {
        if self.mode.is_some_and(|mode| mode > 0o7777) {
            return Err(VolumeError::Invalid { what: "permission bits above 0o7777" });
        }
        if self.uid == Some(u32::MAX) || self.gid == Some(u32::MAX) {
            return Err(VolumeError::Invalid { what: "4294967295 as an owner or a group" });
        }
        // The host would take some of these for 'now' or 'as it is'.
        let whole = |time| matches!(time, SetTime::To(time) if time.nanos >= Timestamp::SECOND_NANOS);
        if whole(self.atime) || whole(self.mtime) {
            return Err(VolumeError::Invalid { what: "1000000000 nanoseconds or more" });
        }
        Ok(())
    }
}
