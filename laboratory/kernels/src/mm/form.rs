//! The forms of direct reclaim, by name: the target, the early ends, the step before failing.
//!
//! Owns: the decisions of a direct reclaim, as functions of plain figures.
//! Does not own: the loops.
//! Invariants: no early end before the smallest target, 32 pages, is met.

use afflux_frames::Watermarks;

use crate::UnknownName;
use crate::sysctl::{HZ, JIFFY_NS};

/// Pages scanned at a time, and the least target of a direct reclaim.
pub(super) const SWAP_CLUSTER_MAX: u64 = 32;

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
pub struct Form {
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
    /// Whether all pages are held until the end of the reclaim, and freed just before the next try.
    pub keeps_freed: bool,
}

/// Linux 2.6.39-rc3.
const BASE: Form = Form {
    name: "base",
    about: "Linux 2.6.39-rc3: 32 pages, then a drain of every CPU's lists",
    target: Target::Cluster,
    scan_limited: false,
    time_limit_ms: None,
    stops_above_high: false,
    dips: false,
    drains: true,
    keeps_freed: false,
};

/// The common form of all of the seed's patches, here with a target of the high mark.
const PATCHED: Form = Form {
    name: "wmark-high",
    about: "as many pages as the high mark, no drain",
    target: Target::High,
    dips: true,
    drains: false,
    ..BASE
};

const LIMITED: Form = Form {
    name: "wmark-high-limited-scan",
    about: "the same, at most twice as many scanned",
    scan_limited: true,
    ..PATCHED
};

const fn timed(name: &'static str, about: &'static str, time_limit_ms: u64) -> Form {
    Form { name, about, time_limit_ms: Some(time_limit_ms), ..LIMITED }
}

/// All forms, in the order of the seed.
pub const FORMS: [Form; 9] = [
    BASE,
    Form { name: "wmark-min", about: "as many pages as the min mark, no drain", target: Target::Min, ..PATCHED },
    PATCHED,
    LIMITED,
    timed("time-limit-100ms", "the same, at most 100 ms", 100),
    timed("time-limit-20ms", "the same, at most 20 ms", 20),
    timed("time-limit-10ms", "the same, at most 10 ms, as posted", 10),
    Form {
        name: "stop-above-high",
        about: "limited scan, and an end once the high mark is reached",
        stops_above_high: true,
        ..LIMITED
    },
    Form {
        name: "keep-freed-pages",
        about: "base, but a reclaim frees all its pages just before the next try",
        keeps_freed: true,
        ..BASE
    },
];

/// The form of that name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn form(name: &str) -> Result<Form, UnknownName> {
    let known = || FORMS.map(|form| form.name).join(", ");
    let unknown = || UnknownName { what: "form of reclaim", name: name.to_owned(), known: known() };
    FORMS.into_iter().find(|form| form.name == name).ok_or_else(unknown)
}

/// The progress of a direct reclaim, between two passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    pub(super) reclaimed: u64,
    pub(super) scanned: u64,
    pub(super) began_ns: u64,
    pub(super) now_ns: u64,
    /// Free frames, as this task sees them.
    pub(super) free: u32,
}

impl Form {
    /// `nr_to_reclaim` of a direct reclaim.
    pub(super) fn nr_to_reclaim(&self, marks: &Watermarks) -> u64 {
        let wanted = match self.target {
            Target::Cluster => 0,
            Target::Min => marks.min,
            Target::High => marks.high,
        };
        SWAP_CLUSTER_MAX.max(wanted.into())
    }

    /// The mark at which the try after a reclaim stops: `min`, or a quarter less for callers that cannot wait.
    pub(super) const fn retry_mark(&self, marks: &Watermarks) -> u32 {
        if self.dips { marks.min - marks.min / 4 } else { marks.min }
    }

    /// Whether a direct reclaim has done enough. Times are compared in whole ticks, and a time limit ends the reclaim
    /// only once it is exceeded.
    pub(super) fn has_done_enough(&self, progress: &Progress, marks: &Watermarks) -> bool {
        let target = self.nr_to_reclaim(marks);
        if progress.reclaimed >= target {
            return true;
        }
        let jiffies = progress.now_ns / JIFFY_NS - progress.began_ns / JIFFY_NS;
        let is_late = self.time_limit_ms.is_some_and(|ms| jiffies > ms * HZ / 1000);
        let scanned_enough = self.scan_limited && progress.scanned > 2 * target;
        let free_enough = self.stops_above_high && progress.free > marks.high;
        progress.reclaimed >= SWAP_CLUSTER_MAX && (is_late || scanned_enough || free_enough)
    }
}
