//! The processes of this host.
//!
//! Owns: their numbers, programs and descriptors; the servers among them, other users' too.
//! Does not own: their uses of a disk (`eject::holders`) or of a port (`port_holder`).
//! Invariants: a process that ends meanwhile is left out, or has no name. Nothing of another user's server is touched.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The program of a server, as the kernel names it.
pub(crate) const SERVER: &str = "afflux";

pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of a process's program; empty if the process has ended.
pub(crate) fn program(process: u32) -> String {
    let program = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&program).trim_end().to_owned()
}

/// The targets of a process's descriptors, as far as this user may see them.
pub(crate) fn links(process: u32) -> impl Iterator<Item = PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// Whether the process holds nothing any more, though its parent may not have asked for its end yet.
pub(crate) fn has_ended(process: u32) -> bool {
    has_nothing_open(&fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default())
}

/// The number of a process's threads in its `stat`, counted behind its name.
const THREADS: usize = 17;

/// The same by the process's `stat`; nothing if the process is gone.
fn has_nothing_open(stat: &str) -> bool {
    // The program's name ends at the last parenthesis, and may hold spaces.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return true };
    // Files are closed with the last thread. The first one may end earlier.
    let threads: Option<u32> = fields.split(' ').nth(THREADS).and_then(|count| count.parse().ok());
    fields.starts_with(['Z', 'X']) && threads.is_none_or(|threads| threads <= 1)
}

/// Processes that may be servers.
pub(crate) fn servers() -> Vec<u32> {
    all().filter(|process| program(*process) == SERVER).collect()
}

/// Most servers of other users that are named.
const NAMED_MAX: usize = 8;

/// A server of another user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

/// The servers in `proc` that do not belong to this user, by process number.
pub(crate) fn neighbours(proc: &Path, own: u32) -> Vec<Neighbour> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let server = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let uid = entry.metadata().ok()?.uid();
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        (uid != own && is_serve(&words)).then_some(Neighbour { pid, uid })
    };
    let mut found: Vec<Neighbour> = entries.filter_map(server).collect();
    found.sort_by_key(|neighbour| neighbour.pid);
    found.truncate(NAMED_MAX);
    found
}

/// Whether a command line is that of `afflux serve`.
fn is_serve(words: &[u8]) -> bool {
    let mut words = words.split(|byte| *byte == 0);
    let program = words.next().and_then(|word| word.rsplit(|byte| *byte == b'/').next());
    program == Some(b"afflux") && words.next() == Some(b"serve")
}

#[cfg(test)]
mod tests;
