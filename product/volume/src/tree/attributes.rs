//! Attributes as clients see them and as the host says them, changes of them, and the state before and after a change.
//!
//! Owns: the plain types, and how a time moves forward.
//! Does not own: the source of the values (`objects::inode`), the question to the host (`directory`), the encoding in a
//! protocol.
//! Invariants: a time given to a client for its own change is later than the one before it, as far as the file system's
//! unit of times allows.

use afflux_engine::WallNanos;

use crate::error::VolumeError;
use crate::tree::identity::Identity;

/// The setuid and setgid bits: a user who runs such a file acts as its owner or its group.
const PRIVILEGES: u32 = 0o6000;

/// A mode without the setuid and setgid bits. If the group may not execute the file, kernels leave the setgid bit to a
/// writer of that group; there it gives no right.
pub(crate) fn without_privileges(mode: u32) -> u32 {
    mode & !PRIVILEGES
}

/// The known attributes of an object, unwritten data included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// The kind of object.
    pub kind: Kind,
    /// The permission bits: 0 to 0o7777.
    pub mode: u32,
    /// The number of names.
    pub links: u32,
    /// Number of the owning user.
    pub uid: u32,
    /// Number of the owning group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of storage; an estimate while data is unwritten.
    pub used: u64,
    /// Major number of a device.
    pub device_major: u32,
    /// Minor number of a device.
    pub device_minor: u32,
    /// The file system's id; the same after a restart if the host's file system has an id.
    pub fsid: u64,
    /// The number, which no other object of the volume has; never 0. Objects of the first export's file system have the
    /// host's own.
    pub fileid: u64,
    /// The last read, as the host records it; reads from the cache do not change it.
    pub atime: Timestamp,
    /// The last change of its bytes, or of a directory's entries.
    pub mtime: Timestamp,
    /// The last change of any part.
    pub ctime: Timestamp,
}

impl Attributes {
    /// The attributes of an object without unwritten data, and with this number.
    pub(crate) fn of_host(identity: &Identity, stat: &Stat, fileid: u64) -> Self {
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
            fileid,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
        }
    }
}

/// The state before an operation that weak cache consistency needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WccAttributes {
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
    /// Attributes right before the change.
    pub before: Option<WccAttributes>,
    /// Attributes right after the change.
    pub after: Option<Attributes>,
}

impl Consistency {
    /// Joins this change and the `next` one of the same object. Without a before if others changed the object in
    /// between, since clients would take that change for their own.
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

/// The result of an operation that changes an object, with the object before and after.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// Result of the change itself.
    pub result: Result<T, VolumeError>,
    /// The changed object's attributes; a directory's if names were changed. Given for failures, too, if they are
    /// available.
    pub consistency: Consistency,
}

impl<T> Outcome<T> {
    pub(crate) fn failed(error: VolumeError) -> Self {
        Self { result: Err(error), consistency: Consistency::default() }
    }
}

/// A change of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetTime {
    /// The time stays.
    #[default]
    Keep,
    /// The server's current time.
    ServerNow,
    /// Sets the time that the caller gave.
    To(Timestamp),
}

/// A change of an object's attributes; the default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AttributeChange {
    /// New permission bits, 0 to 0o7777.
    pub mode: Option<u32>,
    /// Permission bits of `mode`, 0 to 0o777, that a new object does not get, unless its directory has a default access
    /// control list. An object that is there gets its mode whole.
    pub umask: u32,
    /// New owner; not `u32::MAX`, since no user has it and hosts treat it as "no change".
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
    /// Whether it sets times to the server's present, and nothing else but the size.
    pub(crate) fn is_only_touch(&self) -> bool {
        let rest = Self { atime: SetTime::Keep, mtime: SetTime::Keep, size: None, ..*self };
        let touches = |one, other| one == SetTime::ServerNow && matches!(other, SetTime::Keep | SetTime::ServerNow);
        rest == Self::default() && (touches(self.atime, self.mtime) || touches(self.mtime, self.atime))
    }

    /// Whether the mode of a new object depends on the default access control list of its directory.
    pub fn is_masked(&self) -> bool {
        self.mode.is_some_and(|mode| mode & self.umask != 0)
    }

    /// The attributes of a new object in a directory with a default access control list, or without one. Such a list
    /// bounds the mode in place of the umask.
    #[must_use]
    pub fn for_new(self, has_default_acl: bool) -> Self {
        let taken = if has_default_acl { 0 } else { self.umask };
        Self { mode: self.mode.map(|mode| mode & !taken), umask: 0, ..self }
    }

    /// Refuses values that no object can have. The caller checks a size, since it knows the object.
    pub(crate) fn check(&self) -> Result<(), VolumeError> {
        if self.mode.is_some_and(|mode| mode > 0o7777) {
            return Err(VolumeError::Invalid { what: "permission bits above 0o7777" });
        }
        if self.umask > 0o777 {
            return Err(VolumeError::Invalid { what: "a umask above 0o777" });
        }
        if self.uid == Some(u32::MAX) || self.gid == Some(u32::MAX) {
            return Err(VolumeError::Invalid { what: "4294967295 as an owner or a group" });
        }
        // The host would take some of these values for 'now' or 'unchanged'.
        let whole = |time| matches!(time, SetTime::To(time) if time.nanos >= Timestamp::SECOND_NANOS);
        if whole(self.atime) || whole(self.mtime) {
            return Err(VolumeError::Invalid { what: "1000000000 nanoseconds or more" });
        }
        Ok(())
    }
}

/// A time of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Nanoseconds in the second: 0 to 999,999,999.
    pub nanos: u32,
}

impl Timestamp {
    pub(super) const SECOND_NANOS: u32 = 1_000_000_000;

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

    /// The last time that is no later, and a multiple of a unit of nanoseconds or of whole seconds.
    #[must_use]
    pub(crate) fn cut_to(self, unit_ns: u32) -> Self {
        match unit_ns / Self::SECOND_NANOS {
            0 => Self { nanos: self.nanos - self.nanos % unit_ns.max(1), ..self },
            seconds => Self { seconds: self.seconds - self.seconds.rem_euclid(seconds.into()), nanos: 0 },
        }
    }

    /// This time, or the nanosecond after `before` if that is later.
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

/// The kind of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// A file with bytes.
    Regular,
    /// A directory of names.
    Directory,
    /// A symbolic link; never followed here.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// A named pipe.
    Fifo,
    /// A socket in the file system.
    Socket,
}

/// The host's device of an object (`st_dev`): a mount point has its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DeviceKey(pub u64);

/// An object as the host sees it, without data that the engine has not written yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// The kind of object.
    pub kind: Kind,
    /// The permission bits.
    pub mode: u32,
    /// The number of names.
    pub links: u32,
    /// Number of the owning user.
    pub uid: u32,
    /// Number of the owning group.
    pub gid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of storage.
    pub used: u64,
    /// Major number, of a device node.
    pub device_major: u32,
    /// Minor number, of a device node.
    pub device_minor: u32,
    /// Key of the device that has the file.
    pub device: DeviceKey,
    /// The number in the file system.
    pub fileid: u64,
    /// Time of the last access.
    pub atime: Timestamp,
    /// Time of the last change of the contents.
    pub mtime: Timestamp,
    /// Time of the last change of contents or attributes.
    pub ctime: Timestamp,
}
