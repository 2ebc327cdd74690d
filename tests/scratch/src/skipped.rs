//! Tests that a machine cannot run, written down with the reason.
//!
//! Owns: the line of a skipped test, and the file that collects them.
//! Does not own: whether a run fails for it (`cargo xtask ci`).
//! Invariants: a line is appended by one write, so that lines of several processes do not mix.

use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::{env, thread};

/// The variable that names the file of skipped tests.
pub const SKIPPED: &str = "AFFLUX_SKIPPED";

/// Says that the test skips something, and why: the rest of the arguments is as for `format!`.
///
/// It prints the reason. It also appends crate, test and reason to the file that `AFFLUX_SKIPPED` names.
#[macro_export]
macro_rules! skipped {
    ($($reason:tt)+) => {
        $crate::record_skipped(env!("CARGO_PKG_NAME"), module_path!(), format_args!($($reason)+))
    };
}

/// What [`skipped!`] does. The module stands for a test without a thread of its own.
///
/// # Panics
/// When the file cannot be written: a skipped test would pass unseen.
pub fn record_skipped(package: &str, module: &str, reason: Arguments<'_>) {
    let current = thread::current();
    let test = current.name().filter(|name| *name != "main").unwrap_or(module);
    let line = line(package, test, &reason.to_string());
    eprint!("skipped: {line}");
    if let Some(file) = env::var_os(SKIPPED) {
        append(Path::new(&file), &line).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

fn line(package: &str, test: &str, reason: &str) -> String {
    let reason: Vec<&str> = reason.split_whitespace().collect();
    format!("{package}\t{test}\t{}\n", reason.join(" "))
}

fn append(file: &Path, line: &str) -> io::Result<()> {
    File::options().append(true).create(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests;
