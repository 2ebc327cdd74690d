//! Ends of requests that the policy has not been told of yet.
//!
//! A fast device ends a request each few microseconds, and a caller that waits for each of its syncs lets one end at a
//! time. The policy would compute more than the device takes. So it is told of several ends together, each with the
//! device's clocks at that end: it learns the same.
//!
//! Owns: the ends, when there are enough of them, the device's clocks at each.
//! Does not own: the moments of telling (`devices`), the policy.
//! Invariants: each end is told once, in the order of reporting (`a_policy_is_told_of_ends_together_and_of_each_once`).
//! The lock is a leaf, taken under the policy's memory of the device.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_device::platform::Nanos;
use afflux_device::policy::Completed;
use afflux_pages::wait::lock;

/// The most ends that are told together.
const ENDS_MAX: usize = 16;

/// The longest time of the device from the first of these ends to the last: prices change by its work, not by waiting.
/// A request that takes as long is told of at once: for the few ends of a slow device nothing changes.
const TOGETHER_NS: u64 = Nanos::MILLISECOND;

pub(super) struct Ends {
    untold: Mutex<Vec<Completed>>,
    count: AtomicUsize,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { untold: Mutex::new(Vec::with_capacity(ENDS_MAX)), count: AtomicUsize::new(0) }
    }

    /// Adds an end.
    pub(super) fn add(&self, done: Completed) {
        let mut untold = lock(&self.untold);
        untold.push(done);
        self.count.store(untold.len(), Ordering::Release);
    }

    /// Whether the policy has to be told now: there are enough ends, or they took the device long.
    pub(super) fn are_due(&self) -> bool {
        let untold = lock(&self.untold);
        let (Some(first), Some(last)) = (untold.first(), untold.last()) else { return false };
        let busy_ns = |done: &Completed| done.device.busy.transfers_ns;
        let spans_ns = last.latency_ns.max(busy_ns(last).saturating_sub(busy_ns(first)));
        untold.len() >= ENDS_MAX || spans_ns >= TOGETHER_NS
    }

    /// Whether the policy knows of all ends.
    pub(super) fn are_told(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Tells of all ends.
    pub(super) fn tell(&self, of: impl FnOnce(&[Completed])) {
        let mut untold = lock(&self.untold);
        of(&untold);
        untold.clear();
        self.count.store(0, Ordering::Release);
    }
}
