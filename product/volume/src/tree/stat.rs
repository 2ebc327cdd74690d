//! What the host says of an object.
//!
//! Owns: the plain types, and how a time moves forward.
//! Does not own: attributes with unwritten data (`attributes`), the question to the host (`directory`).
//! Invariants: a time given to a client for its own change is later than the one before it, as far as the file system's
//! unit of times allows.

use afflux_engine::WallNanos;

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
