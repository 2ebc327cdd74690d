//! The forms of direct reclaim, by name: what is enough, when to stop early, what is done before failing.
//!
//! Owns: the decisions of a direct reclaim, as functions of plain figures.
//! Does not own: the loops that ask.
//! Invariants: no early stop before the smallest target, 32 pages, is met.

use afflux_engine::Nanos;
use afflux_frames::Watermarks;

use crate::jiffies::TickRate;

/// What every reclaim is to bring at least (`SWAP_CLUSTER_MAX`).
const CLUSTER_PAGES: u64 = 32;

/// How many pages a direct reclaim is to bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// 32.
    Cluster,
    /// As many as the min mark, at least 32.
    Min,
    /// As many as the high mark, at least 32.
    High,
}

/// One form of direct reclaim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimPolicy {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What a reclaim is to bring.
    pub target: Target,
    /// It ends early once it has scanned more than twice its target.
    pub scan_limited: bool,
    /// It ends early once it has taken longer than this, in milliseconds.
    pub time_limit_ms: Option<u64>,
    /// It ends early once more than the high mark is free.
    pub stops_above_high: bool,
    /// What is tried after it may leave a quarter less than the min mark (`ALLOC_HARDER`).
    pub dips: bool,
    /// If that fails, the lists of all CPUs are drained, and it is tried once more.
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

/// What all of the seed's patches have in common, here with a target of the high mark.
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

/// There is no such form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no form of reclaim '{name}'; there are: {}", names())]
pub struct UnknownReclaimPolicy {
    /// What was asked for.
    pub name: String,
}

fn names() -> String {
    RECLAIM_POLICIES.map(|policy| policy.name).join(", ")
}

/// The form of that name.
///
/// # Errors
/// When there is none; the error lists the names.
pub fn reclaim_policy(name: &str) -> Result<ReclaimPolicy, UnknownReclaimPolicy> {
    let found = RECLAIM_POLICIES.into_iter().find(|policy| policy.name == name);
    found.ok_or_else(|| UnknownReclaimPolicy { name: name.to_owned() })
}

/// How far a direct reclaim is, between two passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Pages it has freed.
    pub reclaimed: u64,
    /// Pages it has looked at.
    pub scanned: u64,
    /// When it began.
    pub began: Nanos,
    /// Now.
    pub now: Nanos,
    /// Free frames, as this task sees them.
    pub free: u32,
}

impl ReclaimPolicy {
    /// The same with the dip below the min mark or without: the seed's patches have it.
    #[must_use]
    pub const fn dipping(self, dips: bool) -> Self {
        Self { dips, ..self }
    }

    /// Pages that a direct reclaim is to bring.
    pub fn target_pages(&self, marks: &Watermarks) -> u64 {
        let wanted = match self.target {
            Target::Cluster => 0,
            Target::Min => marks.min,
            Target::High => marks.high,
        };
        CLUSTER_PAGES.max(wanted.into())
    }

    /// The mark that the try after a reclaim stops at: `min`, or a quarter less for callers that cannot wait.
    pub const fn retry_mark(&self, marks: &Watermarks) -> u32 {
        if self.dips { marks.min - marks.min / 4 } else { marks.min }
    }

    /// Whether a direct reclaim has done enough. Time is compared in whole ticks, and a limit is passed when it is
    /// exceeded.
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
