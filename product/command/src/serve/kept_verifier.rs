//! The write verifier of a server that ended with everything written, kept for the next one.
//!
//! Owns: the file, who takes it.
//! Does not own: when everything is written (`serve`), what the verifier is for (the volume).
//! Invariants: what was kept is taken once, by one server, and is durably gone before that one serves. So after a
//! server that ended in any other way the next one has a verifier of its own, and clients send again what they had
//! not committed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes what was kept, if anything was: nothing if it cannot be read, or not be removed for good.
pub(super) fn take(path: &Path) -> Option<[u8; 8]> {
    // Of two servers that start at the same moment one finds it.
    let taken = beside(path, "taken");
    fs::rename(path, &taken).ok()?;
    let text = fs::read_to_string(&taken);
    fs::remove_file(&taken).ok()?;
    sync_directory(path).ok()?;
    parse(text.ok()?.trim())
}

/// Keeps the verifier of a server that has nothing unwritten and answers no more calls.
///
/// # Errors
/// When it cannot be made durable.
pub(super) fn keep(path: &Path, verifier: [u8; 8]) -> io::Result<()> {
    let new = beside(path, "new");
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(file, "{:016x}", u64::from_be_bytes(verifier))?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_directory(path)
    })();
    if written.is_err() {
        // What may not be durable must not be found, either; it may not even be there.
        let _ = fs::remove_file(&new);
        let _ = fs::remove_file(path);
    }
    written
}

fn parse(text: &str) -> Option<[u8; 8]> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(u64::to_be_bytes)
}

fn beside(path: &Path, what: &str) -> std::path::PathBuf {
    path.with_extension(format!("{what}-{}", std::process::id()))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(ErrorKind::NotFound)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
