//! The write verifier of a server that ended with everything written, kept for the next one.
//!
//! Owns: the file, and the rule that only one server takes it.
//! Does not own: when everything is written (`serve`), the use of the verifier (the volume).
//! Invariants: one server takes a kept verifier once, and the file is durably gone before that server serves. So after
//! any other kind of end the next server has a new verifier, and clients send uncommitted writes again.

use std::io;
use std::path::Path;

use crate::private_directory;

/// Takes the kept verifier. None if there is none, or if its file cannot be read or durably removed.
pub(crate) fn take(path: &Path) -> Option<[u8; 8]> {
    parse(private_directory::take(path).ok()??.trim())
}

/// Keeps the verifier of a server that has no unwritten bytes and answers no more calls.
///
/// # Errors
/// When it cannot be made durable.
pub(crate) fn keep(path: &Path, verifier: [u8; 8]) -> io::Result<()> {
    private_directory::leave(path, &format!("{:016x}", u64::from_be_bytes(verifier)))
}

fn parse(text: &str) -> Option<[u8; 8]> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(u64::to_be_bytes)
}

#[cfg(test)]
mod tests;
