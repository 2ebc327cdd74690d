//! When a device's queue of write requests counts as congested.
//!
//! Block layer of Linux 2.6.31: of n requests, on at n − n/8 + 1, off below n − n/8 − n/16 − 1 (kernel-facts, section
//! 2.1). So a writer that backs off has room for n/16 when it comes back.
//!
//! Owns: the marks and the flag. Does not own: the count of requests, the waiters.
//! Invariants: on and off differ, and a queue that runs empty is never congested.

use std::sync::atomic::{AtomicBool, Ordering};

/// Requests from which a queue of `n` is congested.
pub(crate) fn congestion_on_requests(n: u32) -> u32 {
    (n - n / 8 + 1).min(n)
}

/// Requests below which the queue is no longer congested.
pub(crate) fn congestion_off_requests(n: u32) -> u32 {
    (n - n / 8).saturating_sub(n / 16 + 1).max(1)
}

#[derive(Default)]
pub(crate) struct Congestion(AtomicBool);

impl Congestion {
    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// The queue of `n` has grown to `count` requests.
    pub(crate) fn grown(&self, count: u32, n: u32) {
        if count >= congestion_on_requests(n) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// The queue of `n` has shrunk to `count` requests; returns whether that ended the congestion.
    pub(crate) fn shrunk(&self, count: u32, n: u32) -> bool {
        count < congestion_off_requests(n) && self.0.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests;
