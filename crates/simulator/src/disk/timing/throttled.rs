//! A plain byte rate, as the kernel's blkio throttle enforces it.
//!
//! Reads and writes have a budget each. A request passes at once if its budget is even, and then costs
//! it its length at the rate: the next of its direction waits that long, in order of arrival. What has
//! passed takes the latency of the device below. So the first request is not delayed, and requests of
//! `n` bytes with `d` in flight each take `d * n / rate`: as measured on a loop device with
//! `blkio.throttle.write_bps_device` (25.0 MB/s, first 1 MiB write 0.7 ms, 334 ms at depth 8).
//!
//! Owns: the budgets.
//! Does not own: the queue, which is the throttle's own and unbounded in the kernel, and here the
//! engine's depth.
//! Invariants: over any time, what passes is at most one request and the rate.

use super::elevator::Command;
use super::mechanism::Finishing;
use super::transfer_ns;

/// What a throttle is made from.
#[derive(Clone, Debug)]
pub(crate) struct ThrottleParameters {
    pub(crate) read_bytes_per_second: u64,
    pub(crate) write_bytes_per_second: u64,
    /// What a request takes once it has passed.
    pub(crate) latency_ns: u64,
    pub(crate) flush_ns: u64,
}

pub(super) struct Throttled {
    parameters: ThrottleParameters,
    /// When the budgets are even again.
    even_ns: [u64; 2],
    pub(super) finishing: Finishing,
}

impl Throttled {
    pub(super) fn new(parameters: ThrottleParameters) -> Self {
        Self { parameters, even_ns: [0; 2], finishing: Finishing::default() }
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command) {
        let Command { token, write, span, .. } = command;
        let rates = [self.parameters.read_bytes_per_second, self.parameters.write_bytes_per_second];
        let even_ns = &mut self.even_ns[usize::from(write)];
        let passes_ns = now_ns.max(*even_ns);
        *even_ns = passes_ns.saturating_add(transfer_ns(span.len, rates[usize::from(write)]));
        self.finishing.add(passes_ns.saturating_add(self.parameters.latency_ns), token);
    }

    pub(super) fn flush_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.parameters.flush_ns)
    }
}
