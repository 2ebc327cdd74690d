//! The time that the host of this machine gave to others while a CPU of this machine was ready to run.
//!
//! Owns: the figures of /proc/stat, the bound above which no figure of speed holds.
//! Does not own: the sentence about it (the races), the rest of a machine's load.
//! Invariants: all races judge stolen time by one bound.

use std::fs;

/// Stolen time above this part of all time, in thousandths, spoils figures.
const STOLEN_PER_MILLE_MAX: u64 = 2;
/// The place of stolen time in the line of all processors.
const STOLEN: usize = 7;
/// A tick of /proc/stat.
const TICK_MS: u64 = 10;

/// The times of all processors since the start of the machine.
pub struct Processors(Vec<u64>);

/// Stolen time since an earlier look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stolen {
    /// Of all processors together.
    pub ms: u64,
    /// Thousandths of the processors' time.
    pub per_mille: u64,
}

impl Stolen {
    /// Whether no figure of speed from this time holds.
    pub fn spoils_figures(&self) -> bool {
        self.per_mille > STOLEN_PER_MILLE_MAX
    }
}

impl Processors {
    /// The times now. Without /proc/stat all are 0.
    pub fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        // Time of guests is also in that of users.
        Self(line.split_whitespace().take(STOLEN + 1).map(|field| field.parse().unwrap_or(0)).collect())
    }

    /// The time that was stolen since then.
    pub fn stolen(&self) -> Stolen {
        self.stolen_at(&Self::now())
    }

    fn stolen_at(&self, now: &Self) -> Stolen {
        let since = |at: usize| now.0.get(at).zip(self.0.get(at)).map_or(0, |(now, then)| now.saturating_sub(*then));
        let (all, stolen) = ((0..=STOLEN).map(since).sum::<u64>().max(1), since(STOLEN));
        Stolen { ms: stolen * TICK_MS, per_mille: stolen * 1_000 / all }
    }
}

#[cfg(test)]
mod tests;
