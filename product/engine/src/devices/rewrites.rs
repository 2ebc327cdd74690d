//! Whether a file has been left alone, and whether it is rewritten: the basis for writes in idle time.
//!
//! A dirty page is overwritten without a lock and without a notice, so the engine samples pages now and then for
//! overwrites. All other changes of a page are counted with the file's lock held.
//!
//! Owns: the observed writes to a file, since when it has been left alone, when to check again.
//! Does not own: the checks (`writeback`), how long is long enough (`policy`), the order of checks (`ready`).
//! Invariants: no writer reads a clock. A file counts as left alone while only a small part of its dirty pages changes:
//! a heartbeat in its header does not prevent the rest from being written behind.

use afflux_device::platform::Nanos;
use afflux_device::policy::{IdleWriteRule, Rewrites};

/// The part of the dirty pages that may change between two checks of a file that is left alone.
const CHANGING_PART: u64 = 128;
/// Checks in the time for which a file has to be left alone.
const LOOKS: u64 = 4;
/// Longest time between two checks.
const LOOK_NS_MAX: u64 = Nanos::SECOND;

/// The observations of a file.
#[derive(Debug)]
pub(crate) struct RewriteWatch {
    /// Changes of pages since the file was opened.
    changes: u64,
    /// The number of changes at the last check.
    changes_seen: u64,
    seen: Rewrites,
    /// When the policy answered last.
    judged_at: Nanos,
    /// Since when it has been left alone, at the latest.
    since: Nanos,
    idle_write_rule: IdleWriteRule,
    look_at: Nanos,
}

impl Default for RewriteWatch {
    fn default() -> Self {
        Self {
            changes: 0,
            changes_seen: 0,
            seen: Rewrites::default(),
            judged_at: Nanos(0),
            since: Nanos(0),
            idle_write_rule: IdleWriteRule::default(),
            look_at: Nanos::NEVER,
        }
    }
}

impl RewriteWatch {
    /// A page that was dirty already was changed.
    pub(crate) fn note_changed(&mut self) {
        self.changes += 1;
    }

    /// A page has become dirty; `again`: it was written and no flush has followed, or is being written.
    pub(crate) fn note_dirtied(&mut self, again: bool) {
        self.changes += 1;
        self.seen.fresh += u64::from(!again);
        self.seen.again += u64::from(again);
    }

    /// No page waited to be written before now: the file is looked at after `look_ns`.
    pub(crate) fn wakes(&mut self, now: Nanos, look_ns: u64) {
        self.look_at = now.after(look_ns);
    }

    /// When to check it.
    pub(crate) fn look_at(&self) -> Nanos {
        self.look_at
    }

    /// The file is rewritten so often that early writes are wasted.
    pub(crate) fn is_hot(&self) -> bool {
        self.idle_write_rule.hot
    }

    /// The flusher checked the file: `overwritten` of its `dirty` pages were overwritten since the last check. Returns
    /// the observations for the policy.
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
    pub(crate) fn judge(&mut self, now: Nanos, idle_write_rule: IdleWriteRule) {
        if idle_write_rule.ns > self.idle_write_rule.ns {
            self.since = now;
        }
        (self.idle_write_rule, self.judged_at, self.seen) = (idle_write_rule, now, Rewrites::default());
    }

    /// The policy's last answer.
    pub(crate) fn idle_write_rule(&self) -> IdleWriteRule {
        self.idle_write_rule
    }

    /// Whether the file has been left alone for long enough; if not, sets the time of the next check.
    pub(crate) fn check_idle(&mut self, now: Nanos) -> bool {
        let enough_at = self.since.after(self.idle_write_rule.ns);
        let left_alone = enough_at <= now;
        if !left_alone {
            self.looks_again(now);
            self.look_at = self.look_at.min(enough_at);
        }
        left_alone
    }

    /// It is checked again after its part of the time for which it has to be left alone.
    pub(crate) fn looks_again(&mut self, now: Nanos) {
        self.look_at = now.after((self.idle_write_rule.ns / LOOKS).clamp(1, LOOK_NS_MAX));
    }
}

#[cfg(test)]
mod tests;
