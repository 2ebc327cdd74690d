//! Clients that create many small files, for which `--async-metadata` helps.
//!
//! Owns: when this is so, and that it is said once.
//! Does not own: the figures and the words of the log (`upkeep`).
//! Invariants: the memory is bounded, however often somebody looks.

use std::collections::VecDeque;
use std::time::Duration;

/// So many new files ...
pub(crate) const FILES_MIN: u64 = 200;

/// ... within this time ...
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// ... are many small ones if fewer bytes than this became dirty for each.
const FILE_BYTES: u64 = 64 << 10;

/// A server's counts so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerCounts {
    /// Since any moment.
    pub(crate) at: Duration,
    /// Files that clients created.
    pub(crate) created: u64,
    pub(crate) dirtied_bytes: u64,
}

/// The counts of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct SmallFiles {
    seen: VecDeque<ServerCounts>,
    found: bool,
}

impl SmallFiles {
    /// Takes the counts of this moment, about once a second. The number of small files that were created lately, if
    /// there are many for the first time.
    pub(crate) fn look(&mut self, now: ServerCounts) -> Option<u64> {
        if self.found {
            return None;
        }
        while self.seen.front().is_some_and(|oldest| now.at.saturating_sub(oldest.at) > WITHIN) {
            self.seen.pop_front();
        }
        self.seen.push_back(now);
        let oldest = self.seen.front()?;
        let created = now.created.saturating_sub(oldest.created);
        let dirtied_bytes = now.dirtied_bytes.saturating_sub(oldest.dirtied_bytes);
        self.found = created >= FILES_MIN && dirtied_bytes < created * FILE_BYTES;
        self.found.then_some(created)
    }
}

#[cfg(test)]
mod tests;
