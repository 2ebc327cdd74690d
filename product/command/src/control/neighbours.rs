//! Servers that other users run.
//!
//! Owns: finding them in `/proc`.
//! Does not own: this user's servers (`socket_paths`).
//! Invariants: nothing of such a server is touched.

#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAMED_MAX: usize = 8;

/// A server of another user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Neighbour {
    pub(super) pid: u32,
    pub(super) uid: u32,
}

/// The servers in `proc` that do not belong to this user, by process number.
pub(super) fn servers(proc: &Path, own: u32) -> Vec<Neighbour> {
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
