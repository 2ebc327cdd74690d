//! The status of a device, for policies and for people.
//!
//! Owns: the two snapshots, and the figures in each. Does not own: the figures' parts.
//! Invariants: a snapshot locks no file.

use super::id::DeviceId;
use super::state::DeviceState;
use super::waits::PauseStatus;
use crate::error::DeviceError;
use crate::platform::{DeviceReport, Nanos};
use crate::policy::{DeviceCounts, Figure, LimitPages};
use crate::units::Pages;

impl<F> DeviceState<F> {
    /// A policy's view of the device, with `pages` pages charged to it. Pages that cannot be written now do not count.
    pub(super) fn counts(&self, now: Nanos, pages: Pages) -> DeviceCounts {
        let (writeback, roomless) = (self.charges.writeback(), self.charges.unwritable.roomless());
        // While the device hangs these count as all others.
        let aside = if self.figures.hang.is_stalled() { 0 } else { self.in_flight.aside_pages() };
        let mut usage = self.figures.usage();
        DeviceCounts {
            reclaimable: (pages.0 + aside).saturating_sub(writeback + roomless.pages),
            writeback: writeback.saturating_sub(aside),
            dirtied: self.charges.dirtied(),
            written: self.charges.written(),
            bandwidth: usage.bandwidth.bytes_per_second().map_or(0, |bytes| Pages::whole_in(bytes).0),
            flushing: self.agenda.has_turns(),
            runs: self.admission().runs().saturating_sub(roomless.runs),
            bytes_in_flight: usage.write_bytes_in_flight,
            writes_in_flight: self.requests.writes(),
            runs_in_flight: self.in_flight.runs(),
            reads_in_flight: u64::from(usage.clocks.reads_in_flight()),
            calls_in_flight: u64::from(usage.clocks.calls_in_flight()),
            waited_for_at: usage.waited_for_at,
            read_bytes: usage.read_bytes,
            busy: usage.clocks.times(now),
            oldest_in_flight: usage.clocks.oldest(),
            payers_waiting: self.waits.payers_waiting(),
        }
    }

    /// The device's status; `limits` and `figures` are the policy's.
    pub(crate) fn status(&self, limits: LimitPages, figures: Vec<Figure>, now: Nanos) -> DeviceStatus {
        let (dirty_pages, files_dirty) = (self.admission().pages(), self.agenda.unclean_count() as u32);
        let (last_error, pauses) = (self.failures.last_error(), self.waits.pauses());
        let DeviceReport { away_since, names_since, .. } = self.report();
        let mut usage = self.figures.usage();
        DeviceStatus {
            id: self.id(),
            name: self.name.clone(),
            dirty_bytes: dirty_pages.bytes(),
            dirty_runs: self.admission().runs(),
            writeback_bytes: Pages(self.charges.writeback()).bytes(),
            dirty_limit_bytes: Pages(limits.dirty).bytes(),
            dirtied_bytes: Pages(self.charges.dirtied()).bytes(),
            written_bytes: usage.written_bytes,
            read_bytes: usage.read_bytes,
            busy_ns: usage.clocks.any_ns(now),
            in_flight: usage.clocks.in_flight(),
            writers_waiting: pauses.iter().map(|row| row.waiting as u32).sum(),
            files_dirty,
            files_failed: self.failures.files() as u32,
            last_error,
            background_threshold_bytes: Pages(limits.background).bytes(),
            write_bandwidth_bytes_per_s: limits
                .bandwidth
                .map(|pages| Pages(pages).bytes())
                .or(usage.bandwidth.bytes_per_second()),
            pauses,
            figures,
            stalled_ns: usage
                .clocks
                .stalled_since()
                .filter(|_| self.figures.hang.is_stalled())
                .map(|since| now.since(since)),
            names_stalled_ns: names_since.map(|since| now.since(since)),
            away_ns: away_since.map(|since| now.since(since)),
            refuses: self.figures.hang.refuses(),
        }
    }
}

/// The status of a device. As JSON it lacks the engine's own types.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct DeviceStatus {
    /// Its number.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub id: DeviceId,
    /// Its name.
    pub name: String,
    /// Bytes not yet written, including bytes being written.
    pub dirty_bytes: u64,
    /// Their runs: consecutive dirty pages of a file, and requests in flight that continue no other.
    pub dirty_runs: u64,
    /// Bytes being written.
    pub writeback_bytes: u64,
    /// Dirty bytes above which writers to this device wait.
    pub dirty_limit_bytes: u64,
    /// Bytes dirtied since the engine started. (The kernel's BdiDirtied.)
    pub dirtied_bytes: u64,
    /// Bytes written since the engine started.
    pub written_bytes: u64,
    /// Bytes read since the engine started.
    pub read_bytes: u64,
    /// Time during which at least one request was in flight.
    pub busy_ns: u64,
    /// Requests in flight.
    #[cfg_attr(feature = "serde", serde(rename = "in_flight_requests"))]
    pub in_flight: u32,
    /// Writers waiting for the dirty limit.
    pub writers_waiting: u32,
    /// Files with unwritten data.
    pub files_dirty: u32,
    /// Files whose last write or flush failed and has not succeeded since.
    pub files_failed: u32,
    /// The last error of a write or flush.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub last_error: Option<DeviceError>,
    /// Dirty bytes above which its flusher starts to write: the lowest of the thresholds in force, so
    /// that it moves with the bandwidth while one is a time. (The kernel's BackgroundThresh.)
    pub background_threshold_bytes: u64,
    /// Bytes a second that the device writes, as the policy in force estimates it. If the policy makes no estimate, as
    /// measured while the device has work. Unknown at first. (The kernel's BdiWriteBandwidth.)
    pub write_bandwidth_bytes_per_s: Option<u64>,
    /// Writers' pauses by cause, as far as there were any.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub pauses: Vec<PauseStatus>,
    /// Figures of the policy in force about the device.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub figures: Vec<Figure>,
    /// How long the device has completed nothing, if it counts as hung.
    pub stalled_ns: Option<u64>,
    /// How long a call for names or attributes has been under way, if that is too long for a device that works.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub names_stalled_ns: Option<u64>,
    /// How long the store behind the device has given no answer, if it is out of reach. Requests wait for it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub away_ns: Option<u64>,
    /// Its writers and syncs are refused until it completes something.
    pub refuses: bool,
}
