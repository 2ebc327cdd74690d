//! Marks on exported directories, by which a second server on the same files is noticed.
//!
//! Owns: the marked directories, the rule which marks count, the report about another server.
//! Does not own: whether this server must have its directories alone (the command).
//! Invariants: a server sets its own marks before the search for others' marks. So when two servers start together, at
//! least one sees the other. A mark ends with its descriptor, so with its process, however that ends.
//!
//! A served directory has one mark, and each directory above it has a second kind of mark. So a server finds out under
//! any path whether another server serves the same directory, or a directory above or below. The directories above are
//! found through "..". So below a bind mount the directories above the mount point are marked, and not those above the
//! original location. A directory that this user may not read shows nothing.
//!
//! A mark is a lock of an open file description for reading, on a byte that no file has. `flock` would have side
//! effects: systemd-tmpfiles skips files that it locks. Any user who may read a directory can mark it. So marks of
//! users other than root and the server's own user do not count where the user can be seen.

use std::fs;
use std::io;
use std::mem::{self, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::process::geteuid;

use super::error::HostError;

/// The byte whose lock marks a served directory.
const SERVED: i64 = i64::MAX - 3;
/// The byte whose lock marks a directory above a served one.
const ABOVE: i64 = i64::MAX - 2;
/// Most directories above a served one that are marked.
const ABOVE_MAX: usize = 1024;

/// The marks of a server, until this is dropped.
#[derive(Default)]
pub(super) struct HostMarks(Vec<OwnedFd>);

#[derive(Debug)]
struct Other {
    /// The directory that it serves, relative to ours.
    relation: &'static str,
    processes: Vec<u32>,
}

impl HostMarks {
    /// Marks directories for export. With `alone`, refuses directories that another server serves. `notes` gets a line
    /// for each mark that failed or does not count.
    pub(super) fn set(paths: &[PathBuf], alone: bool, notes: &mut Vec<String>) -> Result<Self, HostError> {
        let mut marks = Self::default();
        let others: Vec<_> = paths.iter().map(|path| marks.add(path, notes)).collect();
        let found = paths.iter().zip(others).find_map(|(path, other)| Some((path, other?)));
        match found {
            Some((path, other)) if alone => Err(HostError::Served {
                path: path.clone(),
                relation: other.relation,
                processes: listed(&other.processes),
            }),
            _ => Ok(marks),
        }
    }

    /// Marks one directory and those above it. Returns another server of the directory, or of one above or below it.
    fn add(&mut self, path: &Path, notes: &mut Vec<String>) -> Option<Other> {
        let marked = open(CWD, path).and_then(|root| mark(&root, SERVED).map(|()| root));
        let root = match marked {
            Ok(root) => root,
            Err(error) => {
                let path = path.display();
                notes
                    .push(format!("{path} cannot be marked as served ({error}): a second server is not noticed there"));
                return None;
            }
        };
        let mut other = find(&root, SERVED, "it").or_else(|| find(&root, ABOVE, "a directory below it"));
        let mut below = root;
        for _ in 0..ABOVE_MAX {
            // If one cannot be read, those above it are out of reach, too.
            let next =
                open(&below, Path::new("..")).ok().filter(|next| !is_same(&below, next) && mark(next, ABOVE).is_ok());
            let Some(next) = next else { break };
            other = other.or_else(|| find(&next, SERVED, "a directory above it"));
            self.0.push(mem::replace(&mut below, next));
        }
        self.0.push(below);
        other.and_then(|other| other.counted(path, notes))
    }
}

impl Other {
    /// Removes the processes that do not count. `None` if none remains.
    fn counted(mut self, path: &Path, notes: &mut Vec<String>) -> Option<Self> {
        let all = self.processes.clone();
        // This server has the directory under two paths.
        self.processes.retain(|pid| *pid != std::process::id());
        if geteuid().is_root() {
            self.processes.retain(|pid| uid_of(*pid).is_none_or(|uid| uid == 0));
        }
        if !self.processes.is_empty() || all.is_empty() {
            // A process that cannot be seen (in another container) counts.
            return Some(self);
        }
        if all != [std::process::id()] {
            let (path, relation, all) = (path.display(), self.relation, listed(&all));
            notes
                .push(format!("{path}: {relation} is marked as served by {all}, of another user: that does not count"));
        }
        None
    }
}

fn open(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(directory, path, flags, Mode::empty())?)
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let number = |fd: &OwnedFd| fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
    number(one) == number(other)
}

fn lock_of(kind: libc::c_int, place: i64) -> libc::flock {
    // SAFETY: a `flock` may be all zero bytes.
    let mut lock: libc::flock = unsafe { zeroed() };
    (lock.l_type, lock.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (lock.l_start, lock.l_len) = (place, 1);
    lock
}

fn mark(directory: &OwnedFd, place: i64) -> io::Result<()> {
    let lock = lock_of(libc::F_RDLCK, place);
    // SAFETY: the descriptor is open, and the call reads the lock alone.
    let set = unsafe { libc::fcntl(directory.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Another holder of this mark on a directory.
fn find(directory: &OwnedFd, place: i64, relation: &'static str) -> Option<Other> {
    let mut lock = lock_of(libc::F_WRLCK, place);
    // SAFETY: the descriptor is open, and the call reads and writes the lock alone.
    let asked = unsafe { libc::fcntl(directory.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if asked != 0 || lock.l_type == libc::F_UNLCK as libc::c_short {
        return None;
    }
    let ino = fstat(directory).ok()?.st_ino;
    Some(Other { relation, processes: lock_owners(ino, place, directory.as_raw_fd()) })
}

/// The processes that hold a lock on this byte of the file with this inode number; this process's descriptor `own` does
/// not count.
fn lock_owners(ino: u64, place: i64, own: RawFd) -> Vec<u32> {
    let (file, byte) = (format!(":{ino} "), format!(" {place} {place}"));
    let holds = |path: &Path| {
        let told = fs::read_to_string(path).unwrap_or_default();
        let locks = told.lines().filter(|line| line.starts_with("lock:"));
        locks.into_iter().any(|line| line.contains(&file) && line.trim_end().ends_with(&byte))
    };
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries(PathBuf::from("/proc")).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_own = |pid: u32, path: &Path| {
        pid == std::process::id() && path.file_name().is_some_and(|name| name.to_str() == Some(&own.to_string()))
    };
    let has = |pid: &u32| {
        let mut descriptors = entries(PathBuf::from(format!("/proc/{pid}/fdinfo")));
        descriptors.any(|entry| !is_own(*pid, &entry.path()) && holds(&entry.path()))
    };
    processes.filter(has).collect()
}

fn uid_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|process| process.uid())
}

/// Processes, for people.
fn listed(processes: &[u32]) -> String {
    let numbers: Vec<_> = processes.iter().map(u32::to_string).collect();
    match numbers.as_slice() {
        [] => "a process that cannot be seen from here".to_owned(),
        [one] => format!("process {one}"),
        several => format!("processes {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests;
