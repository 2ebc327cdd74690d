//! The time that the host of this machine gave to others.
//!
//! Owns: the figures of /proc/stat, the remark on a table.
//! Does not own: the rest of a machine's load.
//! Invariants: a table from a machine with stolen time says so.

use std::fs;

/// Stolen time above this part of all time, in thousandths, spoils figures.
const STOLEN_PER_MILLE_MAX: u64 = 2;
/// The place of stolen time in the line of all processors.
const STOLEN: usize = 7;

/// The times of all processors since the start of the machine.
pub(super) struct Processors(Vec<u64>);

impl Processors {
    pub(super) fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        // Time of guests is also in that of users.
        Self(line.split_whitespace().take(STOLEN + 1).map(|field| field.parse().unwrap_or(0)).collect())
    }

    /// A sentence about the time since then.
    pub(super) fn remark(&self) -> String {
        self.remark_at(&Self::now())
    }

    fn remark_at(&self, now: &Self) -> String {
        let since = |at: usize| now.0.get(at).zip(self.0.get(at)).map_or(0, |(now, then)| now.saturating_sub(*then));
        let (all, stolen) = ((0..=STOLEN).map(since).sum::<u64>().max(1), since(STOLEN));
        let per_mille = stolen * 1_000 / all;
        if per_mille > STOLEN_PER_MILLE_MAX {
            format!("**No figure of speed holds: the host took {per_mille} thousandths of the processors' time.**")
        } else {
            format!("The host took {per_mille} thousandths of the processors' time.")
        }
    }
}

#[cfg(test)]
mod tests;
