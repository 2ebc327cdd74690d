//! How a device is used: requests in flight, bytes moved, the time with requests of each kind, the speed of its writes,
//! and the ends that the policy does not know yet.
//!
//! A clock runs while any request of its kind is in flight, however many. The time of transfers is measured beside
//! calls that move no bytes, above all flushes. A flush that holds transfers up is not their doing. A flush that
//! follows transfers may have written bytes out of the device's memory.
//!
//! Owns: the figures and their lock, the clocks, the estimate of bandwidth, the ends to tell; the learned law of
//! readahead, what openings of files may read ahead, whether the device hangs.
//! Does not own: the counts of pages (`charges`), the moments of telling (`devices`), decisions based on the figures
//! (policies).
//! Invariants: every request that begins ends, with the instant that it began with. A clock stands while nothing of its
//! kind is in flight, and never goes back; time without a write in flight does not make a device look slow. An end
//! takes a hang back. A request set aside is not in flight here. Each end is reported once, in the order of reporting
//! (`a_policy_is_told_of_ends_together_and_of_each_once`). The locks are leaves.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use afflux_device::platform::Nanos;
use afflux_device::policy::{AtEnd, BusyTimes, Completed};
use afflux_pages::sync::OwnLines;
use afflux_pages::wait::lock;

use crate::devices::hang::HangState;
use crate::readahead::Openings;
use crate::readahead::prices::{Learner, SharedWindowSizes, WindowSizes};

/// A call of this size takes as long as those of a stream.
const LARGE_CALL_BYTES: u64 = 1 << 20;

/// The end of a file's bytes on the device: the file's slot, and a page.
pub(crate) type FilePosition = (u32, u64);

/// The figures. The fields that a read changes come first, on few cache lines: readers on many threads contend for
/// them.
#[derive(Default)]
#[repr(C)]
pub(super) struct Usage {
    pub(super) clocks: Clocks,
    /// Where the last submitted read ends.
    read_end: Option<FilePosition>,
    /// When the last read or call ended.
    pub(super) waited_for_at: Option<Nanos>,
    pub(super) read_bytes: u64,
    reading: Learner,
    pub(super) write_bytes_in_flight: u64,
    /// Where the last request written in idle time ends.
    idle_end: Option<FilePosition>,
    /// Where the last submitted write ends.
    write_end: Option<FilePosition>,
    pub(super) written_bytes: u64,
    pub(super) bandwidth: Bandwidth,
    /// Whether the device's calls are long and overlap.
    is_store: bool,
}

impl Usage {
    pub(super) fn new(is_store: bool) -> Self {
        Self { is_store, ..Self::default() }
    }

    pub(super) fn begins(&mut self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.clocks.begins(kind, now);
        if kind == TransferKind::Write {
            self.write_bytes_in_flight += bytes;
            self.bandwidth.begins(now);
        }
    }

    /// A read of these pages of a file is submitted. Returns its number of runs: 0 if the device continues its last
    /// read.
    pub(super) fn read_begins(&mut self, file: u32, pages: &Range<u64>, now: Nanos) -> u64 {
        let clocks = &self.clocks;
        self.reading.begins(clocks.reads_in_flight(), clocks.reads_in_flight() == clocks.in_flight());
        self.clocks.begins(TransferKind::Read, now);
        u64::from(self.read_end.replace((file, pages.end)) != Some((file, pages.start)))
    }

    /// A read of `runs` runs has ended. Returns how far to read ahead, if that has changed, and the device at this end.
    pub(super) fn read_ends(
        &mut self,
        runs: u64,
        bytes: u64,
        submitted: Nanos,
        now: Nanos,
    ) -> (Option<WindowSizes>, AtEnd) {
        self.clocks.ends(TransferKind::Read, submitted, now);
        self.waited_for_at = Some(now);
        self.read_bytes += bytes;
        let left = self.clocks.reads_in_flight();
        let alone = left == self.clocks.in_flight();
        let at_end = self.at_end(now);
        if self.is_store && bytes >= LARGE_CALL_BYTES {
            self.reading.note_call(now.since(submitted));
        }
        let prices = self.reading.ends(runs, bytes, left, alone, at_end.busy.reads_ns);
        (prices.map(|_| self.window_sizes()), at_end)
    }

    fn at_end(&mut self, now: Nanos) -> AtEnd {
        let (busy, oldest_in_flight) = (self.clocks.times(now), self.clocks.oldest());
        AtEnd { busy, oldest_in_flight, bytes_in_flight: self.write_bytes_in_flight }
    }

    /// How far to read ahead.
    pub(super) fn window_sizes(&self) -> WindowSizes {
        let call_mib = if self.is_store { self.reading.call_mib() } else { 0 };
        WindowSizes::of(self.reading.prices(), call_mib)
    }

    /// A write from `first` up to `end` of a file is submitted; returns whether the write before it ended at `first`.
    pub(super) fn try_continue_write(&mut self, file: u32, first: u64, end: u64) -> bool {
        self.write_end.replace((file, end)) == Some((file, first))
    }

    /// An idle write from `first` up to `end` of a file is submitted; returns whether the device continues its last
    /// idle write.
    pub(super) fn try_continue_idle_write(&mut self, file: u32, first: u64, end: u64) -> bool {
        self.idle_end.replace((file, end)) == Some((file, first))
    }

    /// A transfer counts no longer as in flight.
    pub(super) fn set_aside(&mut self, kind: TransferKind, bytes: u64, submitted: Nanos, now: Nanos) {
        self.clocks.set_aside(kind, submitted, now);
        if kind == TransferKind::Write {
            self.write_bytes_in_flight -= bytes;
            self.bandwidth.ends(now, 0);
        }
    }

    /// A transfer that was set aside has ended, and moved so many bytes.
    pub(super) fn aside_ends(&mut self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.clocks.works(now);
        match kind {
            TransferKind::Read => self.read_bytes += bytes,
            TransferKind::Write => self.written_bytes += bytes,
            TransferKind::Other => {}
        }
    }

    /// A request other than a read has ended; it moved its bytes only if `moved`. Returns the device at this end.
    pub(super) fn ends(&mut self, kind: TransferKind, bytes: u64, moved: bool, submitted: Nanos, now: Nanos) -> AtEnd {
        self.clocks.ends(kind, submitted, now);
        if kind == TransferKind::Write {
            let moved_bytes = if moved { bytes } else { 0 };
            self.write_bytes_in_flight -= bytes;
            self.written_bytes += moved_bytes;
            self.bandwidth.ends(now, moved_bytes);
        } else {
            self.waited_for_at = Some(now);
        }
        self.at_end(now)
    }
}

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
        // Nothing has ended since the last progress: the time may be that of the file that holds the request.
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

/// Measured time after which older measurements fade.
const MEMORY_NS: u64 = 3 * Nanos::SECOND;
const WINDOW_NS: u64 = 50 * Nanos::MILLISECOND;
const FIRST_WINDOWS: u32 = 8;
const FIRST_WINDOW_NS: u64 = 5 * Nanos::MILLISECOND;

/// A device's write bandwidth.
#[derive(Default)]
pub(crate) struct Bandwidth {
    in_flight: u32,
    since: Nanos,
    window_ns: u64,
    window_bytes: u64,
    windows: u32,
    measured_ns: u64,
    bytes_per_second: u64,
}

impl Bandwidth {
    pub(crate) fn begins(&mut self, now: Nanos) {
        if self.in_flight == 0 {
            self.since = now;
        }
        self.in_flight += 1;
    }

    pub(crate) fn ends(&mut self, now: Nanos, bytes: u64) {
        self.in_flight -= 1;
        self.window_ns += now.since(self.since);
        self.since = now;
        self.window_bytes += bytes;
        let enough = if self.windows < FIRST_WINDOWS { FIRST_WINDOW_NS } else { WINDOW_NS };
        if self.window_ns >= enough {
            self.close();
        }
    }

    fn close(&mut self) {
        let (window_ns, bytes) = (u128::from(self.window_ns), u128::from(self.window_bytes));
        let kept_ns = u128::from(self.measured_ns.min(MEMORY_NS.saturating_sub(self.window_ns)));
        let backed_bytes = u128::from(self.bytes_per_second) * kept_ns;
        let second = u128::from(Nanos::SECOND);
        self.bytes_per_second =
            u64::try_from((backed_bytes + bytes * second) / (kept_ns + window_ns)).unwrap_or(u64::MAX);
        self.measured_ns = self.measured_ns.saturating_add(self.window_ns);
        self.windows = self.windows.saturating_add(1);
        (self.window_ns, self.window_bytes) = (0, 0);
    }

    /// Bytes a second, once known.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        (self.windows > 0).then_some(self.bytes_per_second)
    }
}

pub(crate) struct Figures {
    usage: OwnLines<Mutex<Usage>>,
    /// How far to read ahead, given the cost of reads.
    read_windows: SharedWindowSizes,
    pub openings: Openings,
    pub(super) hang: HangState,
}

impl Figures {
    pub(super) fn new(is_store: bool) -> Self {
        let usage = Usage::new(is_store);
        let read_windows = SharedWindowSizes::new(usage.window_sizes());
        Self { usage: OwnLines(Mutex::new(usage)), read_windows, openings: Openings::new(), hang: HangState::new() }
    }

    pub(super) fn usage(&self) -> MutexGuard<'_, Usage> {
        lock(&self.usage)
    }

    pub(crate) fn read_windows(&self) -> WindowSizes {
        self.read_windows.get()
    }

    pub(crate) fn request_begins(&self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.usage().begins(kind, bytes, now);
        self.hang.begins();
    }

    /// A call that moves no bytes has ended.
    pub(crate) fn request_ends(&self, kind: TransferKind, bytes: u64, moved: bool, now: Nanos) {
        self.transfer_ends(kind, bytes, moved, now, now);
    }

    /// A transfer that was submitted at an instant has ended at another.
    pub(crate) fn transfer_ends(
        &self,
        kind: TransferKind,
        bytes: u64,
        moved: bool,
        submitted: Nanos,
        now: Nanos,
    ) -> AtEnd {
        let at_end = self.usage().ends(kind, bytes, moved, submitted, now);
        self.hang.ends();
        at_end
    }

    /// A transfer submitted at an instant is set aside: from now on it does not count as in flight.
    pub(super) fn set_aside(&self, kind: TransferKind, bytes: u64, submitted: Nanos, now: Nanos) {
        self.usage().set_aside(kind, bytes, submitted, now);
    }

    /// A transfer that was set aside has ended, and moved `bytes` bytes; 0 if it failed.
    pub(crate) fn aside_ends(&self, kind: TransferKind, bytes: u64, now: Nanos) {
        self.usage().aside_ends(kind, bytes, now);
        self.hang.ends();
    }

    /// Since when the device has completed nothing; `None` if nothing is in flight.
    pub(crate) fn stalled_since(&self) -> Option<Nanos> {
        self.usage().clocks.stalled_since()
    }

    /// Stops the watch until a request is in flight; false if one is.
    pub(crate) fn try_unwatch(&self) -> bool {
        self.hang.set_watched(false);
        let idle = self.stalled_since().is_none();
        if !idle {
            self.hang.set_watched(true);
        }
        idle
    }

    /// The device hangs since `since`, and refuses its writers or does not; false if it has gone on.
    pub(crate) fn try_mark_hanging(&self, since: Nanos, refuses: bool) -> bool {
        let hangs = {
            // A request that ends meanwhile resets this afterwards.
            let usage = self.usage();
            let hangs = usage.clocks.stalled_since() == Some(since);
            if hangs {
                self.hang.set(true, refuses);
            }
            hangs
        };
        if hangs && refuses {
            self.hang.wake_waiters();
        }
        hangs
    }

    /// A read of these pages of a file is about to be submitted. Returns its number of runs: 0 if the last read of the
    /// device ended there.
    pub(crate) fn read_begins(&self, file: u32, pages: &Range<u64>, now: Nanos) -> u64 {
        let runs = self.usage().read_begins(file, pages, now);
        self.hang.begins();
        runs
    }

    /// A read of `runs` runs has ended, between these two instants, and moved `bytes` bytes; 0 if it failed.
    pub(crate) fn read_ends(&self, runs: u64, bytes: u64, submitted: Nanos, now: Nanos) -> AtEnd {
        let (law, at_end) = self.usage().read_ends(runs, bytes, submitted, now);
        if let Some(law) = law {
            self.read_windows.set(law);
        }
        self.hang.ends();
        at_end
    }

    /// A write up to a position is about to be submitted; returns whether the write before it ended at `first`.
    pub(crate) fn try_continue_write(&self, first: u64, (file, end): FilePosition) -> bool {
        self.usage().try_continue_write(file, first, end)
    }

    /// An idle write up to a position is about to be submitted; returns whether the one before it ended at `first`.
    pub(crate) fn try_continue_idle_write(&self, first: u64, (file, end): FilePosition) -> bool {
        self.usage().try_continue_idle_write(file, first, end)
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
