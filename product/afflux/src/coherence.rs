//! Noticing other programs' changes of the host's files.
//!
//! Owns: the last known state of a host's file, and the comparison with a new one.
//! Does not own: the files (`files`), when they are looked at (`open`, `file`, `upkeep`), the pages that become void
//! (the engine).
//! Invariants: our own change is never taken for another program's, and unwritten bytes are never given up for another
//! program's change. While we write a file, the origin of a change is unknown: afterwards only its size is compared.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime};

use afflux_engine::File;
use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp, statx};
use rustix::io::Errno;

/// The facts that tell one state of a host's file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
    /// Another file with the same inode number has another creation time.
    made: (i64, u32),
}

fn time(time: StatxTimestamp) -> (i64, u32) {
    (time.tv_sec, time.tv_nsec)
}

impl Stamp {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&look_at(fd)?))
    }
}

impl From<&Statx> for Stamp {
    fn from(stat: &Statx) -> Self {
        Self {
            size: stat.stx_size,
            modified: time(stat.stx_mtime),
            changed: time(stat.stx_ctime),
            made: time(stat.stx_btime),
        }
    }
}

/// Asks the host for the file's state.
pub(crate) fn look_at(fd: impl AsFd) -> io::Result<Statx> {
    let looked = statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME);
    looked.map_err(|errno| match errno {
        Errno::NOSYS | Errno::PERM => {
            let refused = io::Error::from(errno);
            let what =
                format!("statx: {refused}; the kernel is older than 4.11, or a filter of system calls refuses it");
            io::Error::new(io::ErrorKind::Unsupported, what)
        }
        errno => errno.into(),
    })
}

/// In the form of the standard library.
pub(crate) fn system_time(time: StatxTimestamp) -> SystemTime {
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = match time.tv_sec {
        0.. => SystemTime::UNIX_EPOCH.checked_add(seconds),
        _ => SystemTime::UNIX_EPOCH.checked_sub(seconds),
    };
    whole.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_nanos(time.tv_nsec.into())
}

/// The last known state of the host's file.
pub(crate) struct KnownHostState {
    stamp: Stamp,
    /// The engine's count of its own changes at that time.
    changes: u64,
    looked: Instant,
}

impl KnownHostState {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { stamp, changes: 0, looked: Instant::now() }
    }

    /// Whether the host was asked within `age`.
    pub(crate) fn is_newer_than(&self, age: Duration) -> bool {
        self.looked.elapsed() < age
    }

    /// Whether we have not changed the file since the host was asked, and everything is written.
    pub(crate) fn is_unchanged(&self, now: &EngineSnapshot) -> bool {
        now.clean && self.changes == now.changes
    }

    /// A change by another program, if the host's answer shows one.
    pub(crate) fn seen(&mut self, file: &File, before: &EngineSnapshot, stamp: Stamp) -> Option<SizeChange> {
        if !before.clean || !file.is_clean() || file.change_count() != before.changes {
            return None;
        }
        let ours = self.changes != before.changes;
        let foreign = if ours { stamp.size != file.size() } else { stamp != self.stamp };
        *self = Self { stamp, changes: before.changes, looked: Instant::now() };
        foreign.then_some(SizeChange { size: stamp.size, seen: before.changes })
    }

    /// Whether the host's file is unchanged; for a block device, whether it is the same one.
    pub(crate) fn is_as(&self, stamp: &Stamp, is_block_device: bool) -> bool {
        self.stamp == *stamp || is_block_device && self.stamp.made == stamp.made
    }
}

/// The engine's state before a call to the host.
pub(crate) struct EngineSnapshot {
    changes: u64,
    clean: bool,
}

impl EngineSnapshot {
    pub(crate) fn of(file: &File) -> Self {
        Self { changes: file.change_count(), clean: file.is_clean() }
    }
}

/// A change by others: the file's new size, and the engine's count of changes before the check.
pub(crate) struct SizeChange {
    pub(crate) size: u64,
    pub(crate) seen: u64,
}
