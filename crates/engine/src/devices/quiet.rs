//! Whether a file has been left alone, and whether it is rewritten: what idle time is used by.
//!
//! A dirty page is overwritten without a lock and without telling anybody, so that the overwriting of pages is looked
//! for now and then, at some of them. What changes a page otherwise is counted with the file's lock held.
//!
//! Owns: what was seen of a file's being written to, since when it has been left alone, when to look again.
//! Does not own: the looking (`writeback`), how long is long enough (`policy`), the order of looks (`ready`).
//! Invariants: a clock is asked by none that writes. A file counts as left alone while what changes is a small part of
//! what is dirty: a heartbeat in its header keeps nobody from writing the rest behind.

use crate::platform::Nanos;
use crate::policy::{Quiet, Rewrites};

/// Of what is dirty, the part that may change between two looks at a file that is left alone.
const CHANGING_PART: u64 = 128;
/// Looks in the time for which a file has to be left alone.
const LOOKS: u64 = 4;
/// Longest time between two looks.
const LOOK_NS_MAX: u64 = Nanos::SECOND;

/// What is kept of a file.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Changes of pages since the file was opened.
    changes: u64,
    /// As many as there were at the last look.
    changes_seen: u64,
    seen: Rewrites,
    /// When the policy answered last.
    judged_at: Nanos,
    /// Since when it has been left alone, at the latest.
    since: Nanos,
    quiet: Quiet,
    look_at: Nanos,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            changes: 0,
            changes_seen: 0,
            seen: Rewrites::default(),
            judged_at: Nanos(0),
            since: Nanos(0),
            quiet: Quiet::default(),
            look_at: Nanos::NEVER,
        }
    }
}

impl Watch {
    /// A page of it was changed that was dirty already.
    pub(crate) fn note_changed(&mut self) {
        self.changes += 1;
    }

    /// A page of it has become dirty; `again`: it was written and no flush has followed, or is being written.
    pub(crate) fn note_dirtied(&mut self, again: bool) {
        self.changes += 1;
        self.seen.fresh += u64::from(!again);
        self.seen.again += u64::from(again);
    }

    /// Nothing of it waited to be written before now: it is looked at after `look_ns`.
    pub(crate) fn wakes(&mut self, now: Nanos, look_ns: u64) {
        self.look_at = now.after(look_ns);
    }

    /// When to look at it.
    pub(crate) fn look_at(&self) -> Nanos {
        self.look_at
    }

    /// It is rewritten so often that to write it early is wasted.
    pub(crate) fn is_hot(&self) -> bool {
        self.quiet.hot
    }

    /// It was looked at: `overwritten` of its `dirty` pages were since the last time. What the policy is told.
    pub(crate) fn look(&mut self, now: Nanos, dirty: u64, overwritten: u64) -> Rewrites {
        let changed = self.changes - self.changes_seen + overwritten;
        self.changes_seen = self.changes;
        if changed * CHANGING_PART > dirty {
            self.since = now;
        }
        self.seen.again += overwritten;
        self.seen.over_ns = now.since(self.judged_at);
        self.seen
    }

    /// The policy has answered.
    pub(crate) fn judge(&mut self, now: Nanos, quiet: Quiet) {
        if quiet.ns > self.quiet.ns {
            self.since = now;
        }
        (self.quiet, self.judged_at, self.seen) = (quiet, now, Rewrites::default());
    }

    /// What the policy answered last.
    pub(crate) fn quiet(&self) -> Quiet {
        self.quiet
    }

    /// Whether it has been left alone for long enough; if not, says when to look again.
    pub(crate) fn is_left_alone(&mut self, now: Nanos) -> bool {
        let enough_at = self.since.after(self.quiet.ns);
        let left_alone = enough_at <= now;
        if !left_alone {
            self.looks_again(now);
            self.look_at = self.look_at.min(enough_at);
        }
        left_alone
    }

    /// It is looked at again after its part of the time for which it has to be left alone.
    pub(crate) fn looks_again(&mut self, now: Nanos) {
        self.look_at = now.after((self.quiet.ns / LOOKS).clamp(1, LOOK_NS_MAX));
    }
}

#[cfg(test)]
mod tests;
