//! A byte rate enforced as by the kernel's blkio throttle, and the file system's journal behind it.
//!
//! Reads and writes have a budget each, counted in slices of some timer ticks. A request passes at
//! once if the bytes of its slices, including its own, are within the rate's allowance for the slices *begun*: so the
//! first slice's bytes pass in one burst. Otherwise it waits for the slices' end, for the time of the excess bytes at
//! the rate, and for one tick more, since a timer is never early. All later requests of its direction wait behind it in
//! order. A slice that ends with no request waiting is forgotten with its debts and credits. While requests come, all
//! slices but the last whole one are dropped together with their bytes, which makes up for the time lost to a late
//! timer. (Linux 6.18, block/blk-throttle.c; the bytes counted for one request are never split, however much the device
//! below splits it.)
//!
//! A passed request takes a latency and the rate of the device below. A flush has no bytes; it queues among the
//! writes. If the file got blocks or size since the last flush, the file system first logs that. The log is a write of
//! its own. When it is done, the commit block follows with a flush before and one after it, since a device without
//! forced unit access needs both.
//!
//! Owns: the budgets.
//! Does not own: the queue (the throttle's own and unbounded in the kernel; here the engine's depth), changes of files
//! (`service`).
//! Invariants: over any interval, at most the rate's bytes, two slices' and one request pass.

use super::elevator::Command;
use super::finishing::Finishing;
use super::times::transfer_ns;

#[derive(Clone, Debug)]
pub(crate) struct ThrottleParameters {
    pub(crate) read_bytes_per_second: u64,
    pub(crate) write_bytes_per_second: u64,
    /// Time between two ticks of the kernel's timer.
    pub(crate) tick_ns: u64,
    /// Length of a slice of budget.
    pub(crate) slice_ns: u64,
    /// Time of a passed request, besides its bytes.
    pub(crate) latency_ns: u64,
    /// Rate of the device below.
    pub(crate) below_bytes_per_second: u64,
    pub(crate) flush_ns: u64,
    /// Bytes logged before the commit block, and bytes of that block; 0: no journal.
    pub(crate) journal_bytes: u64,
    pub(crate) commit_bytes: u64,
}

/// The budget of one direction; times are in ticks.
struct Budget {
    bytes_per_second: u64,
    tick_ns: u64,
    slice: u64,
    start: u64,
    end: u64,
    /// Bytes passed in the slices since `start`.
    bytes: u64,
    /// The instant at which the last request passes.
    passes_ns: u64,
}

impl Budget {
    fn new(bytes_per_second: u64, parameters: &ThrottleParameters) -> Self {
        let tick_ns = parameters.tick_ns.max(1);
        let slice = (parameters.slice_ns / tick_ns).max(1);
        Self { bytes_per_second, tick_ns, slice, start: 0, end: 0, bytes: 0, passes_ns: 0 }
    }

    fn allowed(&self, ticks: u64) -> u64 {
        let bytes = u128::from(self.bytes_per_second) * u128::from(ticks) * u128::from(self.tick_ns) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn is_within(&self, at: u64) -> bool {
        (self.start..=self.end).contains(&at)
    }

    fn extend(&mut self, until: u64) {
        if self.end < until {
            self.end = until.next_multiple_of(self.slice);
        }
    }

    /// Ticks that a request has to wait.
    fn wait(&self, at: u64, len: u64) -> u64 {
        let elapsed = at - self.start;
        let begun = elapsed.max(1).next_multiple_of(self.slice);
        let over = (self.bytes + len).saturating_sub(self.allowed(begun));
        if over == 0 {
            return 0;
        }
        (transfer_ns(over, self.bytes_per_second) / self.tick_ns).max(1) + (begun - elapsed)
    }

    /// Drops all whole slices but the last.
    fn trim(&mut self, at: u64) {
        if !self.is_within(at) {
            return;
        }
        self.end = (at + self.slice).next_multiple_of(self.slice);
        let whole = (at - self.start) / self.slice;
        if whole < 2 {
            return;
        }
        let ticks = (whole - 1) * self.slice;
        let bytes = self.allowed(ticks).min(self.bytes);
        if bytes > 0 {
            self.bytes -= bytes;
            self.start += ticks;
        }
    }

    /// The instant at which a request that comes now passes.
    fn pass(&mut self, now_ns: u64, len: u64) -> u64 {
        let mut waits = now_ns < self.passes_ns;
        let mut at_ns = now_ns.max(self.passes_ns);
        loop {
            let at = at_ns / self.tick_ns;
            if waits || self.is_within(at) {
                self.extend(at + self.slice);
            } else {
                (self.bytes, self.start, self.end) = (0, at, at + self.slice);
            }
            let wait = self.wait(at, len);
            self.extend(at + wait);
            if wait == 0 {
                self.bytes += len;
                self.trim(at);
                self.passes_ns = at_ns;
                return at_ns;
            }
            at_ns = (at + wait + 1).saturating_mul(self.tick_ns);
            waits = true;
        }
    }
}

pub(super) struct Throttled {
    parameters: ThrottleParameters,
    reads: Budget,
    writes: Budget,
    pub(super) finishing: Finishing,
}

impl Throttled {
    pub(super) fn new(parameters: ThrottleParameters) -> Self {
        Self {
            reads: Budget::new(parameters.read_bytes_per_second, &parameters),
            writes: Budget::new(parameters.write_bytes_per_second, &parameters),
            parameters,
            finishing: Finishing::default(),
        }
    }

    fn below_ns(&self, len: u64) -> u64 {
        self.parameters.latency_ns.saturating_add(transfer_ns(len, self.parameters.below_bytes_per_second))
    }

    pub(super) fn take(&mut self, now_ns: u64, command: Command) {
        let Command { token, write, span, .. } = command;
        let budget = if write { &mut self.writes } else { &mut self.reads };
        let passes_ns = budget.pass(now_ns, span.len);
        self.finishing.add(passes_ns.saturating_add(self.below_ns(span.len)), token);
    }

    /// The end of a flush with nothing to log.
    pub(super) fn flush(&mut self, now_ns: u64) -> u64 {
        self.writes.pass(now_ns, 0).saturating_add(self.parameters.flush_ns)
    }

    /// The instant at which the log is written; `None` if there is no journal.
    pub(super) fn log(&mut self, now_ns: u64) -> Option<u64> {
        let len = self.parameters.journal_bytes;
        (len > 0).then(|| self.writes.pass(now_ns, len).saturating_add(self.below_ns(len)))
    }

    /// The instant at which the commit block is durable.
    pub(super) fn commit(&mut self, now_ns: u64) -> u64 {
        let len = self.parameters.commit_bytes;
        let passes_ns = self.writes.pass(now_ns, len);
        passes_ns.saturating_add(self.below_ns(len)).saturating_add(2 * self.parameters.flush_ns)
    }
}
