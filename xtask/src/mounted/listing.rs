//! Everything that a mount shows: names, kinds, modes, owners, sizes, times, links and bytes.
//!
//! Owns: the two lists, their first difference.
//! Does not own: the mount.
//! Invariants: two equal listings are of equal files, by SHA-256.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Access times are left out: the listing itself is an access.
const SCRIPT: &str = "cd \"$1\"; find . -printf '%p %y %m %n %U %G %s %T@ %l\\n' | sort; \
                      find . -type f -print0 | sort -z | xargs -0r sha256sum";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listing(Vec<String>);

impl Listing {
    pub(super) fn of(directory: &Path) -> Result<Self> {
        let mut shell = Command::new("sh");
        let output = shell.args(["-ec", SCRIPT, "sh"]).arg(directory).output().context("sh")?;
        if !output.status.success() {
            bail!("a file cannot be read: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(Self(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()))
    }

    pub(super) fn lines(&self) -> usize {
        self.0.len()
    }

    /// The first line that only one of both has.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let missing = self.0.iter().find(|line| !other.0.contains(line)).map(|line| format!("before: {line}"));
        let more = || other.0.iter().find(|line| !self.0.contains(line)).map(|line| format!("after: {line}"));
        missing.or_else(more)
    }
}

#[cfg(test)]
mod tests;
