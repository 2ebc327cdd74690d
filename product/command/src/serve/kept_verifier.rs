//! The write verifier of a server that ended with everything written, kept for the next one.
//!
//! Owns: the file, and the rule that only one server takes it.
//! Does not own: when everything is written (`serve`), the use of the verifier (the volume).
//! Invariants: one server takes a kept verifier once, and the file is durably gone before that server serves. So after
//! any other kind of end the next server has a new verifier, and clients send uncommitted writes again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes the kept verifier. None if there is none, or if its file cannot be read or durably removed.
pub(super) fn take(path: &Path) -> Option<[u8; 8]> {
    // If two servers start at the same moment, only one rename succeeds.
    let taken = sibling(path, "taken");
    fs::rename(path, &taken).ok()?;
    let text = fs::read_to_string(&taken);
    fs::remove_file(&taken).ok()?;
    sync_directory(path).ok()?;
    parse(text.ok()?.trim())
}

/// Keeps the verifier of a server that has no unwritten bytes and answers no more calls.
///
/// # Errors
/// When it cannot be made durable.
pub(super) fn keep(path: &Path, verifier: [u8; 8]) -> io::Result<()> {
    let new = sibling(path, "new");
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(file, "{:016x}", u64::from_be_bytes(verifier))?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_directory(path)
    })();
    if written.is_err() {
        // A verifier that may not be durable must not be found later. The files may not exist.
        let _ = fs::remove_file(&new);
        let _ = fs::remove_file(path);
    }
    written
}

fn parse(text: &str) -> Option<[u8; 8]> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(u64::to_be_bytes)
}

fn sibling(path: &Path, what: &str) -> std::path::PathBuf {
    path.with_extension(format!("{what}-{}", std::process::id()))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(ErrorKind::NotFound)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
