//! The forms of direct reclaim, by name: the target, the early stops, the step before failing.
//!
//! Owns: the decisions of a direct reclaim, as functions of plain figures.
//! Does not own: the loops.
//! Invariants: no early stop before the smallest target, 32 pages, is met.

use afflux_engine::Nanos;
use afflux_frames::Watermarks;

use crate::jiffies::TickRate;

/// The least number of pages that every reclaim has to free (`SWAP_CLUSTER_MAX`).
const CLUSTER_PAGES: u64 = 32;

/// The number of pages that a direct reclaim has to free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// 32 pages.
    Cluster,
    /// As many as the min mark, at least 32.
    Min,
    /// As many as the high mark, at least 32.
    High,
}

/// One form of direct reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimPolicy {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The target of a reclaim.
    pub target: Target,
    /// Whether it ends early once it has scanned more than twice its target.
    pub scan_limited: bool,
    /// Milliseconds after which it ends early.
    pub time_limit_ms: Option<u64>,
    /// Whether it ends early once more than the high mark is free.
    pub stops_above_high: bool,
    /// Whether the next try may leave a quarter less than the min mark (`ALLOC_HARDER`).
    pub dips: bool,
    /// Whether, if that try fails, the lists of all CPUs are drained for another one.
    pub drains: bool,
}

/// Linux 2.6.39-rc3.
const BASE: ReclaimPolicy = ReclaimPolicy {
    name: "base",
    about: "Linux 2.6.39-rc3: 32 pages, then a drain of every CPU's lists",
    target: Target::Cluster,
    scan_limited: false,
    time_limit_ms: None,
    stops_above_high: false,
    dips: false,
    drains: true,
};

/// The common form of all of the seed's patches, here with a target of the high mark.
const PATCHED: ReclaimPolicy = ReclaimPolicy {
    name: "wmark-high",
    about: "as many pages as the high mark, no drain",
    target: Target::High,
    dips: true,
    drains: false,
    ..BASE
};

const LIMITED: ReclaimPolicy = ReclaimPolicy {
    name: "wmark-high-limited-scan",
    about: "the same, at most twice as many scanned",
    scan_limited: true,
    ..PATCHED
};

const fn timed(name: &'static str, about: &'static str, time_limit_ms: u64) -> ReclaimPolicy {
    ReclaimPolicy { name, about, time_limit_ms: Some(time_limit_ms), ..LIMITED }
}

/// All forms, in the order of the seed.
pub const RECLAIM_POLICIES: [ReclaimPolicy; 8] = [
    BASE,
    ReclaimPolicy {
        name: "wmark-min",
        about: "as many pages as the min mark, no drain",
        target: Target::Min,
        ..PATCHED
    },
    PATCHED,
    LIMITED,
    timed("time-limit-100ms", "the same, at most 100 ms", 100),
    timed("time-limit-20ms", "the same, at most 20 ms", 20),
    timed("time-limit-10ms", "the same, at most 10 ms: what was posted", 10),
    ReclaimPolicy {
        name: "stop-above-high",
        about: "limited scan, and an end once the high mark is reached",
        stops_above_high: true,
        ..LIMITED
    },
];

/// The error for an unknown form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no form of reclaim '{name}'; there are: {}", names())]
pub struct UnknownReclaimPolicy {
    /// The requested name.
    pub name: String,
}

fn names() -> String {
    RECLAIM_POLICIES.map(|policy| policy.name).join(", ")
}

/// The form of that name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn reclaim_policy(name: &str) -> Result<ReclaimPolicy, UnknownReclaimPolicy> {
    let found = RECLAIM_POLICIES.into_iter().find(|policy| policy.name == name);
    found.ok_or_else(|| UnknownReclaimPolicy { name: name.to_owned() })
}

/// The progress of a direct reclaim, between two passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Pages freed.
    pub reclaimed: u64,
    /// Pages looked at.
    pub scanned: u64,
    /// The begin of the reclaim.
    pub began: Nanos,
    /// Now.
    pub now: Nanos,
    /// Free frames, as this task sees them.
    pub free: u32,
}

impl ReclaimPolicy {
    /// The same form with or without the dip below the min mark, which the seed's patches have.
    #[must_use]
    pub const fn dipping(self, dips: bool) -> Self {
        Self { dips, ..self }
    }

    /// Pages that a direct reclaim has to free.
    pub fn target_pages(&self, marks: &Watermarks) -> u64 {
        let wanted = match self.target {
            Target::Cluster => 0,
            Target::Min => marks.min,
            Target::High => marks.high,
        };
        CLUSTER_PAGES.max(wanted.into())
    }

    /// The mark at which the try after a reclaim stops: `min`, or a quarter less for callers that cannot wait.
    pub const fn retry_mark(&self, marks: &Watermarks) -> u32 {
        if self.dips { marks.min - marks.min / 4 } else { marks.min }
    }

    /// Whether a direct reclaim has done enough. Times are compared in whole ticks, and a time limit ends the reclaim
    /// only once it is exceeded.
    pub fn has_done_enough(&self, progress: &Progress, marks: &Watermarks) -> bool {
        let target = self.target_pages(marks);
        if progress.reclaimed >= target {
            return true;
        }
        let ticks = TickRate::DEFAULT.at(progress.now) - TickRate::DEFAULT.at(progress.began);
        let is_late = self.time_limit_ms.is_some_and(|ms| ticks > ms * TickRate::DEFAULT.a_second() / 1000);
        let scanned_enough = self.scan_limited && progress.scanned > 2 * target;
        let free_enough = self.stops_above_high && progress.free > marks.high;
        progress.reclaimed >= CLUSTER_PAGES && (is_late || scanned_enough || free_enough)
    }
}
