//! Tests that were skipped in a run.
//!
//! Owns: the file to which the tests write their skips, the reasons that a gate accepts.
//! Does not own: the line of a test (`afflux_scratch::skipped!`).
//! Invariants: each run begins with an empty file. A gate fails for a skipped test whose reason is not in the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};

use crate::repository;

/// A reason that a gate accepts: this machine, or any machine, cannot have a thing that the test needs.
struct Excused {
    /// A part of the skipped test's reason.
    reason: &'static str,
    /// Why a gate accepts the reason.
    because: &'static str,
}

const EXCUSED: &[Excused] = &[
    Excused { reason: "root reads every directory", because: "the other tests need root" },
    Excused { reason: "Debian package prometheus", because: "the package starts a service, so it is never installed" },
    Excused { reason: "Debian's prometheus", because: "the package starts a service, so it is never installed" },
    Excused { reason: "blkio", because: "only control groups of version 1 have this throttle" },
    Excused { reason: "no throttled disk can be made", because: "only control groups of version 1 have this throttle" },
    Excused {
        reason: "no control groups that bound memory",
        because: "containers have no control groups of their own",
    },
    Excused { reason: "no uncached writes", because: "Linux has RWF_DONTCACHE since 6.14, on some file systems" },
    Excused { reason: "DontCache", because: "Linux has RWF_DONTCACHE since 6.14, on some file systems" },
    Excused { reason: "kernel takes no filter", because: "a kernel may be built without seccomp" },
    Excused { reason: "kernel has no filters", because: "a kernel may be built without seccomp" },
    Excused { reason: "no io_uring here", because: "a kernel or a container may refuse io_uring" },
    Excused { reason: "no number was used twice", because: "the file system chooses the numbers of inodes" },
    Excused { reason: "no address but loopback's", because: "a network name space may have no other address" },
    Excused { reason: "SIGHUP is ignored", because: "nohup and some services ignore it" },
    Excused { reason: "beside one", because: "two sanitizers do not run in one process" },
];

/// Where the tests of a run write what they skip.
pub(crate) fn begin() -> Result<PathBuf> {
    let file = repository::target().join("skipped");
    match fs::remove_file(&file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).with_context(|| file.display().to_string()),
        _ => Ok(file),
    }
}

/// Prints the skipped tests in that file. With `is_gate`, fails for those that are not excused.
pub(crate) fn end(file: &Path, is_gate: bool) -> Result<()> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    eprint!("{}", listed(&lines));
    let faults = not_excused(&lines);
    if is_gate && faults > 0 {
        bail!("{faults} tests were skipped whose reasons are not in xtask/src/skips.rs");
    }
    Ok(())
}

/// Each reason once, with its tests; a test may skip several parts for one reason.
fn listed(lines: &str) -> String {
    let mut tests: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (package, test, reason) in lines.lines().filter_map(fields) {
        let (test, tests) = (format!("{package}: {test}"), tests.entry(reason).or_default());
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let line = |(reason, tests): (&&str, &Vec<String>)| {
        let because = excuse(reason).map(|because| format!(" (excused: {because})")).unwrap_or_default();
        format!("Skipped: {reason}{because}\n{}", tests.iter().map(|test| format!("  {test}\n")).collect::<String>())
    };
    tests.iter().map(line).collect()
}

/// How many lines have a reason that is not in the table, or no reason.
fn not_excused(lines: &str) -> usize {
    lines.lines().filter(|line| fields(line).and_then(|(_, _, reason)| excuse(reason)).is_none()).count()
}

fn fields(line: &str) -> Option<(&str, &str, &str)> {
    let (package, rest) = line.split_once('\t')?;
    let (test, reason) = rest.split_once('\t')?;
    Some((package, test, reason))
}

fn excuse(reason: &str) -> Option<&'static str> {
    EXCUSED.iter().find(|row| reason.contains(row.reason)).map(|row| row.because)
}

#[cfg(test)]
mod tests;
