//! How a device is used: requests in flight, bytes moved, time busy, failures in a row.
//!
//! Owns: the figures, under one lock. Does not own: what follows from them.
//! Invariants: every request that begins ends; a leaf in the lock order.

use super::bandwidth::Bandwidth;
use super::busy::Clocks;
use crate::error::DeviceError;
use crate::platform::Nanos;
use crate::readahead::law::Law;
use crate::readahead::prices::Learner;

/// Files that failed one after the other, with no write in between that succeeded, after which all writers that
/// wait for room are told instead of kept waiting.
const FAILURES_BEFORE_TELLING: u32 = 3;

/// What a request does to the device's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It reads bytes.
    Read,
    /// It writes bytes.
    Write,
    /// It moves none: flushes, sizes, holes, reservations.
    Other,
}

/// Where on the device a file's bytes end: the file's slot, and a page.
pub(crate) type Place = (u32, u64);

/// The figures. What a read changes comes first, on few cache lines: readers of many threads take them from each other.
#[derive(Default)]
#[repr(C)]
pub(super) struct Usage {
    pub(super) clocks: Clocks,
    /// Where the request that read last ends.
    read_end: Option<Place>,
    /// When the last read or call ended.
    pub(super) waited_for_at: Option<Nanos>,
    pub(super) read_bytes: u64,
    /// What reads cost.
    reading: Learner,
    pub(super) write_bytes_in_flight: u64,
    /// Where the request that was written in idle time last ends.
    idle_end: Option<Place>,
    /// Where the request that was submitted last to write ends.
    write_end: Option<Place>,
    pub(super) written_bytes: u64,
    pub(super) bandwidth: Bandwidth,
    /// Failed writes and flushes since the last that succeeded.
    failures_in_row: u32,
    pub(super) last_error: Option<DeviceError>,
}

impl Usage {
    pub(super) fn begins(&mut self, kind: Kind, bytes: u64, now: Nanos) {
        self.clocks.begins(kind, now);
        if kind == Kind::Write {
            self.write_bytes_in_flight += bytes;
            self.bandwidth.begins(now);
        }
    }

    /// A read from `first` up to `end` of a file is submitted; of how many runs: none if the device reads on from where
    /// it was.
    pub(super) fn read_begins(&mut self, first: u64, (file, end): Place, now: Nanos) -> u64 {
        let clocks = &self.clocks;
        self.reading.begins(clocks.reads_in_flight(), clocks.reads_in_flight() == clocks.in_flight());
        self.clocks.begins(Kind::Read, now);
        u64::from(self.read_end.replace((file, end)) != Some((file, first)))
    }

    /// A read of so many runs has ended that was submitted then; how far to read ahead, if that has changed.
    pub(super) fn read_ends(&mut self, (runs, bytes): (u64, u64), (submitted, now): (Nanos, Nanos)) -> Option<Law> {
        self.clocks.ends(Kind::Read, submitted, now);
        self.waited_for_at = Some(now);
        self.read_bytes += bytes;
        let left = self.clocks.reads_in_flight();
        let beside = (left, left == self.clocks.in_flight());
        let reads_ns = self.clocks.times(now).reads_ns;
        self.reading.ends((runs, bytes), beside, reads_ns).then(|| Law::of(self.reading.prices()))
    }

    /// How far to read ahead.
    pub(super) fn law(&self) -> Law {
        Law::of(self.reading.prices())
    }

    /// A write from `first` up to `end` of a file is submitted; whether the one submitted before ended there.
    pub(super) fn writes_on(&mut self, file: u32, first: u64, end: u64) -> bool {
        self.write_end.replace((file, end)) == Some((file, first))
    }

    /// A write in idle time from `first` up to `end` of a file is submitted; whether the device goes on from where the
    /// one before ended.
    pub(super) fn idles_on(&mut self, file: u32, first: u64, end: u64) -> bool {
        self.idle_end.replace((file, end)) == Some((file, first))
    }

    /// A request other than a read that was submitted then has moved its bytes, or if it failed none.
    pub(super) fn ends(&mut self, kind: Kind, bytes: u64, moved: bool, (submitted, now): (Nanos, Nanos)) {
        self.clocks.ends(kind, submitted, now);
        let moved_bytes = if moved { bytes } else { 0 };
        if kind != Kind::Write {
            self.waited_for_at = Some(now);
        }
        match kind {
            Kind::Write => {
                self.write_bytes_in_flight -= bytes;
                self.bandwidth.ends(now, moved_bytes);
            }
            Kind::Read | Kind::Other => {}
        }
    }

    /// Notes how a write of so many bytes, or a flush, ended.
    /// `known`: it failed as the file's write before did.
    pub(super) fn note_write(&mut self, result: Result<u64, DeviceError>, known: bool) {
        match result {
            Ok(bytes) => {
                self.written_bytes += bytes;
                self.failures_in_row = 0;
            }
            Err(_) if known => {}
            Err(error) => {
                self.failures_in_row = self.failures_in_row.saturating_add(1);
                self.last_error = Some(error);
            }
        }
    }

    /// The error to tell those who would have to wait for room, if the device keeps failing.
    pub(super) fn keeps_failing(&self) -> Option<DeviceError> {
        self.last_error.filter(|_| self.failures_in_row >= FAILURES_BEFORE_TELLING)
    }
}
