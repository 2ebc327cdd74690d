//! The status of a device, for policies and for people.
//!
//! Owns: the two snapshots, and the figures in each, with their units, names and texts. Does not own: the figures'
//! parts.
//! Invariants: a snapshot locks no file.

use afflux_device::error::DeviceError;
use afflux_device::platform::{DeviceReport, Nanos};
use afflux_device::policy::{DeviceCounts, Figure, LimitPages};
use afflux_pages::units::PageCount;

use super::state::DeviceState;
use super::waits::PauseStatus;
use crate::devices::charges::DeviceId;
use crate::devices::usage::TransferKind;

impl<F> DeviceState<F> {
    /// A policy's view of the device, with `pages` pages charged to it. Pages that cannot be written now do not count.
    pub(super) fn counts(&self, now: Nanos, pages: PageCount) -> DeviceCounts {
        let (writeback, roomless) = (self.charges.writeback(), self.charges.unwritable.roomless());
        // While the device hangs these count as all others.
        let is_stalled = self.hang().is_stalled();
        let counted = &mut *self.in_flight.counted();
        let aside = if is_stalled { 0 } else { counted.aside_pages };
        let (oldest_in_flight, usage) = (counted.oldest(), &mut counted.usage);
        DeviceCounts {
            reclaimable: (pages.0 + aside).saturating_sub(writeback + roomless.pages),
            writeback: writeback.saturating_sub(aside),
            dirtied: self.charges.dirtied(),
            written: self.charges.written(),
            bandwidth: usage.bandwidth.bytes_per_second().map_or(0, |bytes| PageCount::whole_in(bytes).0),
            flushing: self.worklist.has_slices(),
            runs: self.admission().runs().saturating_sub(roomless.runs),
            bytes_in_flight: counted.write_bytes,
            writes_in_flight: self.requests.writes(),
            runs_in_flight: counted.runs,
            reads_in_flight: u64::from(usage.clocks.count(TransferKind::Read)),
            calls_in_flight: u64::from(usage.clocks.count(TransferKind::Other)),
            waited_for_at: usage.waited_for_at,
            read_bytes: usage.read_bytes,
            busy: usage.clocks.times(now),
            oldest_in_flight,
            payers_waiting: self.waits.payers_waiting(),
        }
    }

    /// Whether there are dirty pages that can be written and are not in flight.
    pub(crate) fn has_more_to_write(&self) -> bool {
        let aside = if self.hang().is_stalled() { 0 } else { self.in_flight.counted().aside_pages };
        self.admission().pages().0 + aside > self.charges.writeback() + self.charges.unwritable.roomless().pages
    }

    /// The device's status; `limits` and `figures` are the policy's.
    pub(crate) fn status(&self, limits: LimitPages, figures: Vec<Figure>, now: Nanos) -> DeviceStatus {
        let (dirty_pages, files_dirty) = (self.admission().pages(), self.worklist.unclean_count() as u32);
        let (last_error, pauses) = (self.failures.last_error(), self.waits.pauses());
        let DeviceReport { away_since, names_since, .. } = self.report();
        let usage = &mut self.in_flight.counted().usage;
        DeviceStatus {
            id: self.id(),
            name: self.name.clone(),
            dirty_bytes: dirty_pages.bytes(),
            dirty_runs: self.admission().runs(),
            writeback_bytes: PageCount(self.charges.writeback()).bytes(),
            dirty_limit_bytes: PageCount(limits.dirty).bytes(),
            dirtied_bytes: PageCount(self.charges.dirtied()).bytes(),
            written_bytes: usage.written_bytes,
            read_bytes: usage.read_bytes,
            busy_ns: usage.clocks.any_ns(now),
            in_flight: usage.clocks.in_flight(),
            writers_waiting: pauses.iter().map(|row| row.waiting as u32).sum(),
            files_dirty,
            files_failed: self.failures.files() as u32,
            last_error,
            background_threshold_bytes: PageCount(limits.background).bytes(),
            write_bandwidth_bytes_per_s: limits
                .bandwidth
                .map(|pages| PageCount(pages).bytes())
                .or(usage.bandwidth.bytes_per_second()),
            pauses,
            figures,
            stalled_ns: usage.clocks.stalled_since().filter(|_| self.hang().is_stalled()).map(|since| now.since(since)),
            names_stalled_ns: names_since.map(|since| now.since(since)),
            away_ns: away_since.map(|since| now.since(since)),
            refuses: self.hang().is_refusing(),
        }
    }
}

afflux_device::gauges! {
    /// The status of a device. As JSON it lacks the engine's own types.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
    pub struct DeviceStatus in DEVICE_FIGURES {
        name: String = Word "name" "" "" "" "The device's name, as `--device` takes it.";
        dirty_bytes: u64 = Now "dirty_bytes" "bytes" "" "dirty_bytes" "Bytes that are not written yet, those in flight included.";
        dirty_runs: u64 = Now "dirty_runs" "runs" "" "dirty_runs" "Runs of these bytes: consecutive dirty pages of a file, and requests in flight that continue no other. A disk needs about as many seeks.";
        writeback_bytes: u64 = Now "writeback_bytes" "bytes" "BdiWriteback" "writeback_bytes" "Bytes in flight to the device.";
        dirty_limit_bytes: u64 = Now "dirty_limit_bytes" "bytes" "BdiDirtyThresh" "dirty_limit_bytes" "Dirty bytes above which writers to the device wait.";
        background_threshold_bytes: u64 = Now "background_threshold_bytes" "bytes" "BackgroundThresh" "background_threshold_bytes" "Dirty bytes not in flight above which the device's flusher writes: the lowest threshold in force. A threshold in time moves with the measured speed.";
        dirtied_bytes: u64 = Total "dirtied_bytes" "bytes" "BdiDirtied" "dirtied_bytes" "Bytes dirtied since the start.";
        written_bytes: u64 = Total "written_bytes" "bytes" "BdiWritten" "written_bytes" "Bytes written since the start.";
        write_bandwidth_bytes_per_s: Option<u64> = Now "write_bandwidth_bytes_per_s" "bytes/s" "BdiWriteBandwidth" "write_bandwidth_bytes_per_second" "Write speed over the last 3 s in which a write was in flight, or the estimate of the policy in force. Null before the first writes.";
        read_bytes: u64 = Total "read_bytes" "bytes" "" "read_bytes" "Bytes read since the start.";
        busy_ns: u64 = Total "busy_ns" "ns" "" "busy" "Time during which the device had a request.";
        #[cfg_attr(feature = "serde", serde(rename = "in_flight_requests"))]
        in_flight: u32 = Now "in_flight_requests" "requests" "" "in_flight_requests" "Requests in flight.";
        writers_waiting: u32 = Now "writers_waiting" "writers" "" "waiting_writers" "Writers that wait for the device's dirty limit.";
        files_dirty: u32 = Now "files_dirty" "files" "" "dirty_files" "Files with unwritten bytes.";
        files_failed: u32 = Now "files_failed" "files" "" "failed_files" "Files whose last write or flush failed.";
        stalled_ns: Option<u64> = Now "stalled_ns" "ns" "" "stalled" "Time since the device's last completion, if it counts as hung: it has requests, and has completed none for longer than its policy finds usual.";
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        names_stalled_ns: Option<u64> = Now "names_stalled_ns" "ns" "" "names_stalled" "Age of the oldest call for a name or an attribute, if it is above 5 s.";
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
        away_ns: Option<u64> = Now "away_ns" "ns" "" "away" "Time for which the object store behind the device has given no answer, if it counts as away. Requests wait for it.";
        refuses: bool = Word "refuses" "" "" "" "Whether writers and syncs are refused until the device completes something (`hang_error_ms`).";
    } own {
        /// Number of the device in its engine.
        #[cfg_attr(feature = "serde", serde(skip))]
        id: DeviceId,
        /// The last error of a write or flush.
        #[cfg_attr(feature = "serde", serde(skip))]
        last_error: Option<DeviceError>,
        /// Writers' pauses by cause, as far as there were any.
        #[cfg_attr(feature = "serde", serde(skip))]
        pauses: Vec<PauseStatus>,
        /// Figures of the policy in force about the device.
        #[cfg_attr(feature = "serde", serde(skip))]
        figures: Vec<Figure>,
    }
}
