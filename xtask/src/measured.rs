//! Tables of figures that were measured on this machine.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::repository;

/// Writes a race's tables to `target/NAME.md`; gives the path.
pub(crate) fn write(name: &str, tables: &str) -> Result<PathBuf> {
    let path = repository::target().join(name).with_extension("md");
    fs::write(&path, tables).with_context(|| path.display().to_string())?;
    Ok(path)
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
