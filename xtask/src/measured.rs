//! Tables of figures measured here, in documents that are otherwise written by hand.
//!
//! Owns: the place of a table in its document, the description of the machine.
//! Does not own: the tables.
//! Invariants: only the text between the two lines of a document changes.

use std::fs;

use anyhow::{Context, Result};

use crate::repository;

/// A document, and the two lines around a table in it.
pub(crate) struct Place {
    pub(crate) document: &'static str,
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

impl Place {
    /// Replaces the table.
    pub(crate) fn write(&self, table: &str) -> Result<()> {
        let path = repository::root().join(self.document);
        let document = fs::read_to_string(&path).context(self.document)?;
        fs::write(&path, self.placed(&document, table)?).context(self.document)
    }

    /// The document with another table.
    fn placed(&self, document: &str, table: &str) -> Result<String> {
        let Self { document: name, begin, end } = self;
        let (before, rest) = document.split_once(begin).with_context(|| format!("{name} has no line {begin}"))?;
        let (_, after) = rest.split_once(end).with_context(|| format!("{name} has no line {end}"))?;
        Ok(format!("{before}{begin}\n\n{table}\n{end}{after}"))
    }
}

/// The machine of the measurement.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |it| it.1);
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{count} × {model}, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests;
