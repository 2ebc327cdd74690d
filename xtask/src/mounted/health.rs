//! The state of the machine and of a server over a load: messages of the kernel, the server's memory.
//!
//! Owns: the kernel's messages before and after, the bound on the server's memory.
//! Does not own: the load, the server's process (`mount`).
//! Invariants: each message of the kernel is a complaint, but for those that a run without faults brings.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::list;

/// Parts of harmless messages, each in a line.
const USUAL: &str = include_str!("../../mounted/usual-messages.txt");
/// The most that a server takes beside its cache: a fortieth of the cache, and buffers.
const CACHE_PART: u64 = 40;
const BUFFERS_BYTES: u64 = 288 << 20;

/// The kernel's messages until a moment.
pub(super) struct Messages(Vec<String>);

impl Messages {
    pub(super) fn now() -> Result<Self> {
        let output = Command::new("dmesg").output().context("dmesg")?;
        ensure!(output.status.success(), "dmesg: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(Self(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()))
    }

    /// The complaints since then.
    pub(super) fn complaints_since(&self) -> Result<Vec<String>> {
        Ok(complaints(&self.0, Self::now()?.0))
    }
}

/// The lines that came after the last of `before`. The oldest may have left the kernel's buffer.
fn complaints(before: &[String], now: Vec<String>) -> Vec<String> {
    let known = before.last().and_then(|last| now.iter().rposition(|line| line == last)).map_or(0, |at| at + 1);
    let is_usual = |line: &String| list::rows(USUAL).any(|[part]| line.contains(part));
    now.into_iter().skip(known).filter(|line| !is_usual(line)).collect()
}

/// Fails if a server with a cache of that size has ever had more memory than it may have.
pub(super) fn check_memory(process: u32, cache_bytes: u64) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    let peak = peak_bytes(&status).context(path)?;
    let most = cache_bytes + cache_bytes / CACHE_PART + BUFFERS_BYTES;
    ensure!(peak <= most, "the server had {} MiB of memory, and may have {} MiB", peak >> 20, most >> 20);
    Ok(peak)
}

/// The largest resident size in a process's status.
fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests;
