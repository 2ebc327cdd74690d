//! The dirty bytes of a device now.
//!
//! Owns: the format of the bdi's `stats` in debugfs.
//! Does not own: the use of the figure.
//! Invariants: the figure is unknown if debugfs is not mounted, or closed to this user.

use std::fs;

use super::bdi::Host;

impl Host {
    /// Bytes of a device that are dirty or under writeback, by its bdi.
    pub fn dirty_bytes(&self, bdi: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path("sys/kernel/debug/bdi").join(bdi).join("stats")).ok()?;
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some((kib("BdiWriteback:")?.saturating_add(kib("BdiReclaimable:")?)).saturating_mul(1024))
    }
}
