//! How a device is used: requests in flight, bytes moved, time busy, failures in a row.
//!
//! Owns: the figures, under one lock. Does not own: what follows from them.
//! Invariants: every request that begins ends; a leaf in the lock order.

use super::bandwidth::Bandwidth;
use crate::error::DeviceError;
use crate::platform::Nanos;

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

/// The figures.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) in_flight: u32,
    pub(super) reads_in_flight: u32,
    pub(super) write_bytes_in_flight: u64,
    busy_since: Nanos,
    busy_ns: u64,
    pub(super) written_bytes: u64,
    pub(super) read_bytes: u64,
    pub(super) bandwidth: Bandwidth,
    /// Failed writes and flushes since the last that succeeded.
    failures_in_row: u32,
    pub(super) last_error: Option<DeviceError>,
}

impl Usage {
    pub(super) fn begins(&mut self, kind: Kind, bytes: u64, now: Nanos) {
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        match kind {
            Kind::Read => self.reads_in_flight += 1,
            Kind::Write => {
                self.write_bytes_in_flight += bytes;
                self.bandwidth.begins(now);
            }
            Kind::Other => {}
        }
    }

    /// It moved its bytes, or if it failed none.
    pub(super) fn ends(&mut self, kind: Kind, bytes: u64, moved: bool, now: Nanos) {
        assert!(self.in_flight > 0, "a request ends that never began");
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.busy_ns += now.since(self.busy_since);
        }
        let moved_bytes = if moved { bytes } else { 0 };
        match kind {
            Kind::Read => {
                self.reads_in_flight -= 1;
                self.read_bytes += moved_bytes;
            }
            Kind::Write => {
                self.write_bytes_in_flight -= bytes;
                self.bandwidth.ends(now, moved_bytes);
            }
            Kind::Other => {}
        }
    }

    pub(super) fn busy_ns(&self, now: Nanos) -> u64 {
        self.busy_ns + if self.in_flight > 0 { now.since(self.busy_since) } else { 0 }
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
