//! Lines on standard output and standard error.
//!
//! Owns: writing them.
//! Does not own: their words.
//! Invariants: a reader that has gone (`afflux serve DIR 2>&1 | tee log`, a closed terminal) is no
//! reason to stop: what cannot be said is left unsaid, and a server still writes everything.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

/// Writes a line to standard output, if anybody reads it.
pub(crate) fn say(line: impl Display) {
    let mut output = stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Writes a line to standard error, if anybody reads it.
pub(crate) fn remark(line: impl Display) {
    let _ = writeln!(stderr().lock(), "{line}");
}
