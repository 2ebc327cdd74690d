//! How a device is used: requests in flight, bytes moved, time busy.
//!
//! Owns: the figures, for one lock. Does not own: decisions based on them.
//! Invariants: every request that begins ends; a leaf in the lock order.

use afflux_device::platform::Nanos;
use afflux_device::policy::AtEnd;

use super::bandwidth::Bandwidth;
use super::busy::{Clocks, TransferKind};
use crate::readahead::prices::Learner;
use crate::readahead::window_sizes::WindowSizes;

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

    /// A read from `first` up to `end` of a file is submitted. Returns its number of runs: 0 if the device continues
    /// its last read.
    pub(super) fn read_begins(&mut self, first: u64, (file, end): FilePosition, now: Nanos) -> u64 {
        let clocks = &self.clocks;
        self.reading.begins(clocks.reads_in_flight(), clocks.reads_in_flight() == clocks.in_flight());
        self.clocks.begins(TransferKind::Read, now);
        u64::from(self.read_end.replace((file, end)) != Some((file, first)))
    }

    /// A read of `runs` runs has ended. Returns how far to read ahead, if that has changed, and the device at this end.
    pub(super) fn read_ends(
        &mut self,
        (runs, bytes): (u64, u64),
        (submitted, now): (Nanos, Nanos),
    ) -> (Option<WindowSizes>, AtEnd) {
        self.clocks.ends(TransferKind::Read, submitted, now);
        self.waited_for_at = Some(now);
        self.read_bytes += bytes;
        let left = self.clocks.reads_in_flight();
        let beside = (left, left == self.clocks.in_flight());
        let at_end = self.at_end(now);
        if self.is_store && bytes >= LARGE_CALL_BYTES {
            self.reading.note_call(now.since(submitted));
        }
        let prices = self.reading.ends((runs, bytes), beside, at_end.busy.reads_ns);
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
    pub(super) fn set_aside(&mut self, kind: TransferKind, bytes: u64, (submitted, now): (Nanos, Nanos)) {
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
    pub(super) fn ends(
        &mut self,
        kind: TransferKind,
        bytes: u64,
        moved: bool,
        (submitted, now): (Nanos, Nanos),
    ) -> AtEnd {
        self.clocks.ends(kind, submitted, now);
        let moved_bytes = if moved { bytes } else { 0 };
        if kind != TransferKind::Write {
            self.waited_for_at = Some(now);
        }
        match kind {
            TransferKind::Write => {
                self.write_bytes_in_flight -= bytes;
                self.written_bytes += moved_bytes;
                self.bandwidth.ends(now, moved_bytes);
            }
            TransferKind::Read | TransferKind::Other => {}
        }
        self.at_end(now)
    }
}
