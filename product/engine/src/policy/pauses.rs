//! The tally of writers' pauses: which device, which cause, how many, how long.
//!
//! Owns: the counts. Does not own: the pauses.
//! Invariants: a pause is noted once, when it ends or is dropped.

use std::sync::atomic::{AtomicU64, Ordering};

use super::seam::PauseCause;

const CAUSES: usize = PauseCause::ALL.len();

/// One device's pauses.
#[derive(Default)]
pub(crate) struct PauseTally {
    causes: [Tally; CAUSES],
}

#[derive(Default)]
struct Tally {
    waiting: AtomicU64,
    count: AtomicU64,
    ns: AtomicU64,
    longest_ns: AtomicU64,
    latest_ns: AtomicU64,
}

/// Writers' pauses for one cause on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    /// The cause.
    pub cause: PauseCause,
    /// Writers that now wait for this cause.
    pub waiting: u64,
    /// Pauses that ended.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub ns: u64,
    /// The longest in nanoseconds.
    pub longest_ns: u64,
    /// How much the last ended pause outlasted the policy's request; 0 for waits without a requested time.
    pub latest_ns: u64,
}

impl PauseTally {
    pub(crate) fn begins(&self, cause: PauseCause) {
        self.causes[cause as usize].waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// A pause lasted `ns`, of at most `asked_ns` requested.
    pub(crate) fn ends(&self, cause: PauseCause, ns: u64, asked_ns: u64) {
        let tally = &self.causes[cause as usize];
        tally.waiting.fetch_sub(1, Ordering::Relaxed);
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.ns.fetch_add(ns, Ordering::Relaxed);
        tally.longest_ns.fetch_max(ns, Ordering::Relaxed);
        tally.latest_ns.fetch_max(ns.saturating_sub(asked_ns), Ordering::Relaxed);
    }

    /// Writers that wait, for any cause.
    pub(crate) fn waiting(&self) -> u64 {
        self.causes.iter().map(|tally| tally.waiting.load(Ordering::Relaxed)).sum()
    }

    /// The causes that have occurred.
    pub(crate) fn status(&self) -> Vec<PauseStatus> {
        let row = |(cause, tally): (PauseCause, &Tally)| PauseStatus {
            cause,
            waiting: tally.waiting.load(Ordering::Relaxed),
            count: tally.count.load(Ordering::Relaxed),
            ns: tally.ns.load(Ordering::Relaxed),
            longest_ns: tally.longest_ns.load(Ordering::Relaxed),
            latest_ns: tally.latest_ns.load(Ordering::Relaxed),
        };
        let rows = PauseCause::ALL.into_iter().zip(&self.causes).map(row);
        rows.filter(|row| row.count > 0 || row.waiting > 0).collect()
    }
}
