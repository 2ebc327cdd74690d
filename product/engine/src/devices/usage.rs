//! How a device is used: bytes moved, the time with requests of each kind, the speed of its writes, and the ends that
//! the policy does not know yet.
//!
//! A clock runs while any request of its kind is in flight, however many. The time of transfers is measured beside
//! calls that move no bytes, above all flushes. A flush that holds transfers up is not their doing. A flush that
//! follows transfers may have written bytes out of the device's memory.
//!
//! Owns: the clocks, the estimate of bandwidth, where the last requests ended, the learned law of readahead, the ends
//! to tell.
//! Does not own: the requests in flight, their lock and the moments of their beginning and end (`in_flight`), the
//! moments of telling (`devices`), decisions based on the figures (policies).
//! Invariants: a clock stands while nothing of its kind is in flight, and never goes back; time without a write in
//! flight does not make a device look slow. A request set aside is not in flight here. Each end is reported once, in
//! the order of reporting (`a_policy_is_told_of_ends_together_and_of_each_once`). The lock of the ends is a leaf.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_device::platform::Nanos;
use afflux_device::policy::{BusyTimes, Completed};
use afflux_pages::wait::lock;

use crate::readahead::prices::{Learner, WindowSizes};

/// A call of this size takes as long as those of a stream.
const LARGE_CALL_BYTES: u64 = 1 << 20;

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

/// Requests of which one may continue the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestStream {
    Reads,
    Writes,
    /// Writes in idle time.
    IdleWrites,
}

/// The use of a device. The fields that a read changes come first.
#[derive(Default)]
#[repr(C)]
pub(super) struct Usage {
    pub(super) clocks: Clocks,
    /// Where the last request of each stream ends: the file's slot, and a page.
    stream_ends: [Option<(u32, u64)>; 3],
    /// When the last read or call ended.
    pub(super) waited_for_at: Option<Nanos>,
    pub(super) read_bytes: u64,
    reading: Learner,
    pub(super) written_bytes: u64,
    pub(super) bandwidth: Bandwidth,
    /// Whether the device's calls are long and overlap.
    is_store: bool,
}

impl Usage {
    pub(super) fn new(is_store: bool) -> Self {
        Self { is_store, ..Self::default() }
    }

    /// A request of a stream from page `first` up to `end` of a file is submitted; returns whether the device continues
    /// the one before.
    pub(super) fn try_continue(&mut self, stream: RequestStream, file: u32, first: u64, end: u64) -> bool {
        self.stream_ends[stream as usize].replace((file, end)) == Some((file, first))
    }

    pub(super) fn begins(&mut self, kind: TransferKind, now: Nanos) {
        if kind == TransferKind::Read {
            let reads = self.clocks.count(kind);
            self.reading.begins(reads, reads == self.clocks.in_flight());
        }
        self.clocks.begins(kind, now);
    }

    /// A transfer counts no longer as in flight.
    pub(super) fn set_aside(&mut self, kind: TransferKind, now: Nanos) {
        self.clocks.set_aside(kind, now);
        if kind == TransferKind::Write {
            self.bandwidth.ends(self.clocks.times.writes_ns, 0);
        }
    }

    /// A transfer that was set aside has ended, and moved so many bytes.
    pub(super) fn aside_ends(&mut self, kind: TransferKind, moved: u64, now: Nanos) {
        self.clocks.works(now);
        match kind {
            TransferKind::Write => self.written_bytes += moved,
            _ => self.read_bytes += moved,
        }
    }

    /// A request of `runs` runs has ended, and moved so many bytes: 0 if it failed. Returns how far to read ahead, if
    /// that has changed.
    pub(super) fn ends(
        &mut self,
        kind: TransferKind,
        runs: u64,
        moved: u64,
        submitted: Nanos,
        now: Nanos,
    ) -> Option<WindowSizes> {
        self.clocks.ends(kind, now);
        if kind == TransferKind::Write {
            self.written_bytes += moved;
            self.bandwidth.ends(self.clocks.times.writes_ns, moved);
            return None;
        }
        self.waited_for_at = Some(now);
        if kind == TransferKind::Other {
            return None;
        }
        self.read_bytes += moved;
        if self.is_store && moved >= LARGE_CALL_BYTES {
            self.reading.note_call(now.since(submitted));
        }
        let (left, all, reads_ns) = (self.clocks.count(kind), self.clocks.in_flight(), self.clocks.times.reads_ns);
        self.reading.ends(runs, moved, left, left == all, reads_ns).map(|_| self.window_sizes())
    }

    /// How far to read ahead.
    pub(super) fn window_sizes(&self) -> WindowSizes {
        let call_mib = if self.is_store { self.reading.call_mib() } else { 0 };
        WindowSizes::of(self.reading.prices(), call_mib)
    }
}

#[derive(Default)]
pub(super) struct Clocks {
    times: BusyTimes,
    /// The instant up to which the times are right.
    at: Nanos,
    /// Requests in flight, by kind.
    counts: [u32; 3],
    /// Whether a request was set aside since the last end: until then nothing shows that the device works.
    has_aside: bool,
    /// Time with any request in flight.
    any_ns: u64,
    /// Time with transfers and calls in flight, since the last end of either.
    beside_calls_ns: u64,
    /// When a request last ended, or began while none was in flight.
    progress: Nanos,
}

impl Clocks {
    /// Advances the clocks to an instant. A late report changes nothing.
    fn pass(&mut self, now: Nanos) {
        let ns = now.since(self.at);
        self.at = self.at.max(now);
        let [reads, writes, calls] = self.counts.map(|count| count > 0);
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
        self.counts[kind as usize] += 1;
    }

    pub(super) fn ends(&mut self, kind: TransferKind, now: Nanos) {
        self.leaves(kind, now);
        self.works(now);
        // Time beside a call up to its end may be time for which the call held transfers up. If a transfer ends first,
        // the call was waiting.
        let beside_ns = std::mem::take(&mut self.beside_calls_ns);
        if kind == TransferKind::Other {
            self.times.held_up_ns += beside_ns;
        }
    }

    /// A transfer counts no longer as in flight; the device has done nothing.
    pub(super) fn set_aside(&mut self, kind: TransferKind, now: Nanos) {
        // Nothing has ended since the last progress: the time may be that of the file that holds the request.
        if !self.has_aside {
            self.times.held_up_ns += now.since(self.progress);
        }
        self.leaves(kind, now);
        self.has_aside = true;
    }

    /// A request has ended.
    pub(super) fn works(&mut self, now: Nanos) {
        self.progress = self.progress.max(now);
        self.has_aside = false;
    }

    fn leaves(&mut self, kind: TransferKind, now: Nanos) {
        self.pass(now);
        let count = &mut self.counts[kind as usize];
        assert!(*count > 0, "a request ends that never began");
        *count -= 1;
    }

    /// Requests of a kind in flight.
    pub(super) fn count(&self, kind: TransferKind) -> u32 {
        self.counts[kind as usize]
    }

    /// Requests of any kind in flight.
    pub(super) fn in_flight(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// When a request last ended, or began while none was in flight; `None` while none is. Requests set aside since
    /// then count here.
    pub(super) fn stalled_since(&self) -> Option<Nanos> {
        (self.in_flight() > 0 || self.has_aside).then_some(self.progress)
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
}

/// Measured time after which older measurements fade.
const MEMORY_NS: u64 = 3 * Nanos::SECOND;
const WINDOW_NS: u64 = 50 * Nanos::MILLISECOND;
const FIRST_WINDOWS: u32 = 8;
const FIRST_WINDOW_NS: u64 = 5 * Nanos::MILLISECOND;

/// A device's write bandwidth.
#[derive(Default)]
pub(crate) struct Bandwidth {
    /// The clock of writes when the window began.
    began_ns: u64,
    window_bytes: u64,
    windows: u32,
    measured_ns: u64,
    bytes_per_second: u64,
}

impl Bandwidth {
    /// A write has ended, and moved so many bytes. `writes_ns` is the clock of time with writes in flight.
    pub(crate) fn ends(&mut self, writes_ns: u64, bytes: u64) {
        self.window_bytes += bytes;
        let enough = if self.windows < FIRST_WINDOWS { FIRST_WINDOW_NS } else { WINDOW_NS };
        let window_ns = writes_ns - self.began_ns;
        if window_ns >= enough {
            self.close(window_ns);
            self.began_ns = writes_ns;
        }
    }

    fn close(&mut self, window_ns: u64) {
        let bytes = u128::from(std::mem::take(&mut self.window_bytes));
        let kept_ns = u128::from(self.measured_ns.min(MEMORY_NS.saturating_sub(window_ns)));
        let backed_bytes = u128::from(self.bytes_per_second) * kept_ns;
        let second = u128::from(Nanos::SECOND);
        self.bytes_per_second =
            u64::try_from((backed_bytes + bytes * second) / (kept_ns + u128::from(window_ns))).unwrap_or(u64::MAX);
        self.measured_ns = self.measured_ns.saturating_add(window_ns);
        self.windows = self.windows.saturating_add(1);
    }

    /// Bytes a second, once known.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        (self.windows > 0).then_some(self.bytes_per_second)
    }
}

/// The most ends that are reported together.
const ENDS_MAX: usize = 16;

/// The longest time of the device from the first of these ends to the last: prices change by its work, not by waiting.
/// A request that takes as long is reported at once: for the few ends of a slow device nothing changes.
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

    /// Whether the engine has to report to the policy now: there are enough ends, or they took the device long.
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

    /// Reports all ends.
    pub(super) fn tell(&self, of: impl FnOnce(&[Completed])) {
        let mut untold = lock(&self.untold);
        of(&untold);
        untold.clear();
        self.count.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
