//! The process that has an arena's file: whether it runs, is about to end, or is stopped.
//!
//! Owns: reading that from /proc, ending a stopped process.
//! Does not own: the consequences (`arena_file`).
//! Invariants: a process that does not have the file mapped is never killed: numbers of processes are used again.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The bit of SIGKILL among pending signals.
const KILL_BIT: u64 = 1 << 8;
/// The kernel's flag of a task that exits.
const PF_EXITING: u64 = 4;

/// The state of the process with the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnerState {
    Runs,
    /// It was killed, is exiting, or has lost the lock since.
    Ends,
    /// It is stopped: it cannot end by itself.
    Stopped,
}

impl OwnerState {
    /// The state of a process that may have `file`.
    pub(super) fn of(process: u32, file: &OwnedFd) -> Result<Self, Errno> {
        let read = |what: &str| fs::read_to_string(format!("/proc/{process}/{what}")).unwrap_or_default();
        let (status, stat) = (read("status"), read("stat"));
        if Self::is_ending(&status, &stat) || !has(&read("maps"), file)? {
            return Ok(Self::Ends);
        }
        Ok(if matches!(state(&stat), Some('T' | 't')) { Self::Stopped } else { Self::Runs })
    }

    fn is_ending(status: &str, stat: &str) -> bool {
        let pending = status.lines().filter(|line| line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"));
        let mut pending = pending.filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok());
        let flags = after_name(stat).and_then(|rest| rest.split_whitespace().nth(6)?.parse::<u64>().ok());
        matches!(state(stat), None | Some('Z' | 'X'))
            || pending.any(|signals| signals & KILL_BIT != 0)
            || flags.is_some_and(|flags| flags & PF_EXITING != 0)
    }
}

/// Whether a process is about to end: it was killed, is exiting, or is gone.
pub fn is_ending(process: u32) -> bool {
    let read = |what: &str| fs::read_to_string(format!("/proc/{process}/{what}")).unwrap_or_default();
    OwnerState::is_ending(&read("status"), &read("stat"))
}

/// The fields of a line of /proc/PID/stat after the program's name, which may contain anything.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest)
}

fn state(stat: &str) -> Option<char> {
    after_name(stat)?.trim_start().chars().next()
}

/// Whether a process with these mappings has the file mapped.
fn has(maps: &str, file: &OwnedFd) -> Result<bool, Errno> {
    let inode = fstat(file)?.st_ino.to_string();
    Ok(maps.lines().any(|line| line.split_whitespace().nth(4) == Some(&inode)))
}

/// Kills a process.
pub(super) fn kill(process: u32) -> Result<(), Errno> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    match pidfd_open(pid, PidfdFlags::empty()).and_then(|process| pidfd_send_signal(&process, Signal::KILL)) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests;
