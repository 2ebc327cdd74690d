//! Noticing what others change in the host's files.
//!
//! Owns: what is known of the host's file, what a look at it says.
//! Does not own: when it is looked at (`open`, `file`, `tend`), the pages that are void then (the engine).
//! Invariants: a change of ours is never taken for others', and bytes that are not written yet are never given up for
//! what others did. While we write a file nobody can tell whose change it was: only its size is compared afterwards.

use std::io;
use std::os::fd::AsFd;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, Statx, StatxFlags, StatxTimestamp, statx};

use crate::files::CachedFile;

/// What tells one state of a host's file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
    /// Another file with the same number was made at another time.
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

/// Asks the host.
pub(crate) fn look_at(fd: impl AsFd) -> io::Result<Statx> {
    Ok(statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?)
}

/// As the standard library tells time.
pub(crate) fn system_time(time: StatxTimestamp) -> SystemTime {
    let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
    let whole = match time.tv_sec {
        0.. => SystemTime::UNIX_EPOCH.checked_add(seconds),
        _ => SystemTime::UNIX_EPOCH.checked_sub(seconds),
    };
    whole.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_nanos(time.tv_nsec.into())
}

/// What is known of the host's file.
pub(crate) struct Known {
    stamp: Stamp,
    /// The engine's count of its own changes then.
    changes: u64,
    looked: Instant,
}

impl Known {
    pub(crate) fn new(stamp: Stamp) -> Self {
        Self { stamp, changes: 0, looked: Instant::now() }
    }
}

/// To be taken before the host is asked.
pub(crate) struct Before {
    changes: u64,
    clean: bool,
}

/// Others changed the file: to this size; the engine's count of changes from before.
pub(crate) struct Foreign {
    pub(crate) size: u64,
    pub(crate) seen: u64,
}

impl CachedFile {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn before_look(&self) -> Before {
        Before { changes: self.file.change_count(), clean: self.file.is_clean() }
    }

    /// Whether the host was asked within so long.
    pub(crate) fn was_looked_at(&self, within: Duration) -> bool {
        self.known().looked.elapsed() < within
    }

    /// What the host's answer says of others.
    pub(crate) fn seen(&self, before: &Before, stamp: Stamp) -> Option<Foreign> {
        if self.device.size.is_some() {
            return None;
        }
        let mut known = self.known();
        if !before.clean || !self.file.is_clean() || self.file.change_count() != before.changes {
            return None;
        }
        let ours = known.changes != before.changes;
        let foreign = if ours { stamp.size != self.file.size() } else { stamp != known.stamp };
        *known = Known { stamp, changes: before.changes, looked: Instant::now() };
        foreign.then_some(Foreign { size: stamp.size, seen: before.changes })
    }

    /// Keeps how the file is as it gives up its descriptors. False if that cannot be told, or others changed it before.
    pub(crate) fn look_last(&self) -> bool {
        let before = self.before_look();
        let stamp = self.host.given().and_then(|fd| Stamp::of(&fd).ok());
        stamp.is_some_and(|stamp| self.seen(&before, stamp).is_none() && self.is_as(&stamp))
    }

    /// Whether the host's file is as it was last.
    pub(crate) fn is_as(&self, stamp: &Stamp) -> bool {
        let known = self.known();
        known.stamp == *stamp || self.device.size.is_some() && known.stamp.made == stamp.made
    }
}
