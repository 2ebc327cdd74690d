//! How long a device had requests of each kind in flight.
//!
//! A clock runs while any request of its kind is in flight, however many. The time of transfers is measured beside
//! calls that move no bytes, above all flushes. A flush that holds transfers up is not their doing. A flush that
//! follows transfers may have carried out bytes left in the device's memory.
//!
//! Owns: the clocks, the submission time of each transfer in flight.
//! Does not own: the meaning of the times (policies).
//! Invariants: a clock stands while nothing of its kind is in flight, and never goes back. Each transfer ends with the
//! instant that it began with.

use std::collections::VecDeque;

use afflux_device::platform::Nanos;
use afflux_device::policy::BusyTimes;

/// The effect of a request on the device's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferKind {
    /// A read of file bytes.
    Read,
    /// A write of file bytes.
    Write,
    /// Moves no bytes: flushes, sizes, holes, reservations.
    Other,
}

#[derive(Default)]
pub(super) struct Clocks {
    times: BusyTimes,
    /// The instant up to which the times are right.
    at: Nanos,
    reads: u32,
    writes: u32,
    calls: u32,
    /// Requests set aside since the last end: until then nothing shows that the device works.
    aside: u32,
    /// Time with any request in flight.
    any_ns: u64,
    /// Time with transfers and calls in flight, since the last end of either.
    beside_calls_ns: u64,
    /// When a request last ended, or began while none was in flight.
    progress: Nanos,
    /// Submission times of transfers in flight, the oldest first, except for late reports.
    submitted: VecDeque<Nanos>,
}

impl Clocks {
    /// Advances the clocks to an instant. A late report changes nothing.
    fn pass(&mut self, now: Nanos) {
        let ns = now.since(self.at);
        self.at = self.at.max(now);
        let (reads, writes, calls) = (self.reads > 0, self.writes > 0, self.calls > 0);
        if reads || writes {
            self.times.transfers_ns += ns;
            self.times.reads_ns += if reads { ns } else { 0 };
            self.times.writes_ns += if writes { ns } else { 0 };
            self.beside_calls_ns += if calls { ns } else { 0 };
        } else if calls {
            self.times.calls_alone_ns += ns;
        } else {
            return;
        }
        self.any_ns += ns;
    }

    pub(super) fn begins(&mut self, kind: TransferKind, now: Nanos) {
        self.pass(now);
        if self.stalled_since().is_none() {
            self.progress = now;
        }
        *self.count(kind) += 1;
        if kind != TransferKind::Other {
            self.submitted.push_back(now);
        }
    }

    /// A request submitted at this time is no longer in flight. The time of a call is ignored.
    pub(super) fn ends(&mut self, kind: TransferKind, submitted: Nanos, now: Nanos) {
        self.leaves(kind, submitted, now);
        self.works(now);
        // Time beside a call up to its end may be time for which the call held transfers up. If a transfer ends first,
        // the call was waiting.
        let beside_ns = std::mem::take(&mut self.beside_calls_ns);
        if kind == TransferKind::Other {
            self.times.held_up_ns += beside_ns;
        }
    }

    /// A transfer submitted at this time counts no longer as in flight; the device has done nothing.
    pub(super) fn set_aside(&mut self, kind: TransferKind, submitted: Nanos, now: Nanos) {
        // Nothing has ended since the last progress: the time may be the file's that keeps the request.
        if self.aside == 0 {
            self.times.held_up_ns += now.since(self.progress);
        }
        self.leaves(kind, submitted, now);
        self.aside += 1;
    }

    /// A request has ended.
    pub(super) fn works(&mut self, now: Nanos) {
        self.progress = self.progress.max(now);
        self.aside = 0;
    }

    fn leaves(&mut self, kind: TransferKind, submitted: Nanos, now: Nanos) {
        self.pass(now);
        let count = self.count(kind);
        assert!(*count > 0, "a request ends that never began");
        *count -= 1;
        if kind != TransferKind::Other
            && let Some(at) = self.submitted.iter().position(|one| *one == submitted)
        {
            self.submitted.remove(at);
        }
    }

    fn count(&mut self, kind: TransferKind) -> &mut u32 {
        match kind {
            TransferKind::Read => &mut self.reads,
            TransferKind::Write => &mut self.writes,
            TransferKind::Other => &mut self.calls,
        }
    }

    /// Requests of any kind in flight.
    pub(super) fn in_flight(&self) -> u32 {
        self.reads + self.writes + self.calls
    }

    /// When a request last ended, or began while none was in flight; `None` while none is. Requests set aside since
    /// then count here.
    pub(super) fn stalled_since(&self) -> Option<Nanos> {
        (self.in_flight() + self.aside > 0).then_some(self.progress)
    }

    pub(super) fn reads_in_flight(&self) -> u32 {
        self.reads
    }

    pub(super) fn calls_in_flight(&self) -> u32 {
        self.calls
    }

    /// Time with a request of any kind in flight.
    pub(super) fn any_ns(&mut self, now: Nanos) -> u64 {
        self.pass(now);
        self.any_ns
    }

    /// The times up to now.
    pub(super) fn times(&mut self, now: Nanos) -> BusyTimes {
        self.pass(now);
        self.times
    }

    /// When the oldest of the transfers in flight was submitted.
    pub(super) fn oldest(&self) -> Option<Nanos> {
        self.submitted.front().copied()
    }
}

#[cfg(test)]
mod tests;
