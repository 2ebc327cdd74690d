//! The flags `sync` and `dirsync` of a mount, as the kernel has them now.
//!
//! A server of FUSE is not told of these flags, and `mount -o remount` changes them. The kernel's table of mounts has
//! them.
//!
//! Owns: reading them from the table, when to read again.
//! Does not own: setting them (`mounting`), their effect (front ends).
//! Invariants: a flag that mount(2) has set counts from the first question after that call. Another way to set it
//! counts a second later. The table is that of the view that has the mount, whichever view this process has.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The flags of a mount that make changes synchronous.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncFlags {
    /// Each change is durable when its call returns.
    pub sync: bool,
    /// Changes of names.
    pub dirsync: bool,
}

/// How long flags count if the kernel tells of no change: it tells of none that fsconfig(2) makes.
const TOLD_FOR: Duration = Duration::from_secs(1);

/// The flags of one mount.
pub struct MountFlags {
    /// Major and minor number of the file system, as the table has them.
    file_system: Vec<u8>,
    seen: Mutex<Seen>,
}

struct Seen {
    table: File,
    text: Vec<u8>,
    flags: SyncFlags,
    read_at: Option<Instant>,
}

impl MountFlags {
    /// The flags of a mount's file system, from the table of mounts in this thread's view.
    ///
    /// # Errors
    /// The kernel shows no table.
    pub(super) fn of(file_system: Vec<u8>) -> io::Result<Self> {
        let table = File::open("/proc/thread-self/mountinfo")?;
        let seen = Seen { table, text: Vec::new(), flags: SyncFlags::default(), read_at: None };
        Ok(Self { file_system, seen: Mutex::new(seen) })
    }

    /// The flags now. Those that were seen last, if the kernel does not show the table or the mount any more.
    pub fn now(&self) -> SyncFlags {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_changed() && seen.read().is_ok() {
            seen.flags = found(&seen.text, &self.file_system).unwrap_or(seen.flags);
        }
        seen.flags
    }
}

impl Seen {
    /// Whether the table may have changed since it was read.
    fn is_changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.table, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel tells each change once. So this comes first.
        let is_told = poll(&mut polled, Some(&at_once)).is_err() || !polled[0].revents().is_empty();
        is_told || self.read_at.is_none_or(|at| at.elapsed() >= TOLD_FOR)
    }

    fn read(&mut self) -> io::Result<()> {
        self.read_at = Some(Instant::now());
        self.text.clear();
        self.table.rewind()?;
        self.table.read_to_end(&mut self.text).map(drop)
    }
}

/// The flags of a file system in a table of mounts. They stand among the options of the file system itself, the last
/// field of a row.
fn found(table: &[u8], file_system: &[u8]) -> Option<SyncFlags> {
    let mut rows = table.split(|byte| *byte == b'\n').map(|row| row.split(|byte| *byte == b' '));
    let mut row = rows.find(|row| row.clone().nth(2) == Some(file_system))?;
    let mut options = row.next_back()?.split(|byte| *byte == b',');
    let dirsync = options.clone().any(|option| option == b"dirsync");
    Some(SyncFlags { sync: options.any(|option| option == b"sync"), dirsync })
}

#[cfg(test)]
mod tests;
