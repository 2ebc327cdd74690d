//! The bandwidth that transfers of a store share.
//!
//! Owns: the rate of each transfer: its own bandwidth, or an equal part of all.
//! Does not own: latencies, the bytes.
//! Invariants: integers only. A transfer takes at least its bytes over the bandwidth of one call.

use std::collections::BTreeMap;
use std::task::Waker;

const SECOND: u128 = 1_000_000_000;

/// Bandwidths in bytes a second.
#[derive(Debug)]
pub(super) struct Wire {
    call_rate: u64,
    rate: u64,
    /// Bytes left, times the nanoseconds of a second, and the task that waits for the transfer.
    transfers: BTreeMap<u64, (u128, Option<Waker>)>,
    begun: u64,
    at_ns: u64,
}

impl Wire {
    pub(super) fn new(call_rate: u64, rate: u64) -> Self {
        Self { call_rate: call_rate.max(1), rate: rate.max(1), transfers: BTreeMap::new(), begun: 0, at_ns: 0 }
    }

    fn rate_of_each(&self) -> u128 {
        let part = self.rate / (self.transfers.len() as u64).max(1);
        u128::from(part.min(self.call_rate).max(1))
    }

    pub(super) fn begin(&mut self, now_ns: u64, bytes: u64) -> (u64, Vec<Waker>) {
        let ended = self.pass(now_ns);
        self.begun += 1;
        self.transfers.insert(self.begun, (u128::from(bytes) * SECOND, None));
        (self.begun, ended)
    }

    /// Advances all transfers; returns the tasks of those that have ended.
    pub(super) fn pass(&mut self, now_ns: u64) -> Vec<Waker> {
        let done = self.rate_of_each() * u128::from(now_ns.saturating_sub(self.at_ns));
        self.at_ns = self.at_ns.max(now_ns);
        let mut wakers = Vec::new();
        self.transfers.retain(|_, (left, waker)| {
            *left = left.saturating_sub(done);
            if *left == 0 {
                wakers.extend(waker.take());
            }
            *left > 0
        });
        wakers
    }

    /// The time of the next end.
    pub(super) fn next_end_ns(&self) -> Option<u64> {
        let least = self.transfers.values().map(|(left, _)| *left).min()?;
        Some(self.at_ns + least.div_ceil(self.rate_of_each()) as u64)
    }

    /// Whether the transfer is over; if not, the task is woken at its end.
    pub(super) fn poll(&mut self, transfer: u64, waker: &Waker) -> bool {
        let Some((_, waiting)) = self.transfers.get_mut(&transfer) else { return true };
        *waiting = Some(waker.clone());
        false
    }
}
