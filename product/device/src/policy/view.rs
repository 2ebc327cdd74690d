//! The snapshot for a policy's decision.
//!
//! Owns: its fields and their units.
//! Does not own: taking it (the engine), its use (policies).
//! Invariants: plain values, so that a decision can be replayed from a table.

use crate::platform::Nanos;
use crate::settings::{KnobId, KnobTable, TableKnob};

/// How long a device had requests of each kind in flight, since the engine started. A clock runs while any request of
/// its kind is in flight, however many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Time with reads or writes in flight, not with flushes and other calls alone.
    pub transfers_ns: u64,
    /// Time with reads in flight.
    pub reads_ns: u64,
    /// Time with writes in flight.
    pub writes_ns: u64,
    /// Time with flushes or other calls that move no bytes in flight, and no reads or writes. If a device holds writes
    /// in volatile memory, a flush may take the time that the writes would have.
    pub calls_alone_ns: u64,
    /// The part of `transfers_ns` for which a call may have held reads and writes up: it was in flight beside them and
    /// ended before any of them did. Also the time in which nothing ended before requests were set aside.
    pub held_up_ns: u64,
}

/// Counts of one device, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Dirty pages, without pages under writeback.
    pub reclaimable: u64,
    /// Pages under writeback.
    pub writeback: u64,
    /// Pages dirtied since the engine started.
    pub dirtied: u64,
    /// Pages written since the engine started.
    pub written: u64,
    /// Pages a second that the device writes, by the engine's own measure; 0 if unknown.
    pub bandwidth: u64,
    /// Whether background writeback is under way.
    pub flushing: bool,
    /// Runs of dirty pages, and write requests in flight that do not continue the one before.
    pub runs: u64,
    /// Bytes of write requests in flight.
    pub bytes_in_flight: u64,
    /// Write requests in flight.
    pub writes_in_flight: u64,
    /// Write requests in flight that do not continue the one before.
    pub runs_in_flight: u64,
    /// Read requests in flight.
    pub reads_in_flight: u64,
    /// Flushes and other calls in flight that move no bytes.
    pub calls_in_flight: u64,
    /// When the last read or call ended: a caller waited for it, and may ask for the next.
    pub waited_for_at: Option<Nanos>,
    /// Bytes read since the engine started.
    pub read_bytes: u64,
    /// How long it had requests of each kind in flight.
    pub busy: BusyTimes,
    /// When the oldest of the reads and writes in flight was submitted.
    pub oldest_in_flight: Option<Nanos>,
    /// Payers that wait, for any reason.
    pub payers_waiting: u64,
}

/// Counts that all devices share, in pages: zeros unless the policy [needs](super::Needs::shared_counters) them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCounts {
    /// Count of free frames.
    pub free: u64,
    /// Free frames that ordinary allocations do not get.
    pub reserve: u64,
    /// Frames with pages; dirty ones are among them.
    pub cached: u64,
    /// Dirty pages, without pages under writeback.
    pub dirty: u64,
    /// Pages under writeback.
    pub writeback: u64,
}

/// Counts of the payer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayerCounts {
    /// Pages dirtied since the last decision about the payer.
    pub dirtied: u64,
    /// Runs of dirty pages that the payer began since then.
    pub runs: u64,
    /// Pages that it dirtied unasked since then: [`ChargeBounds::unasked_max`](super::ChargeBounds::unasked_max). They
    /// are not in `dirtied`.
    pub unasked: u64,
    /// Runs that it began so.
    pub unasked_runs: u64,
    /// Pages that the payer is about to dirty, if the decision comes before that.
    pub wanted: u64,
    /// The first of these pages in its file.
    pub wanted_at: u64,
    /// The number of clients with a waiting payer, including its own, if the decision comes before it dirties more. All
    /// payers without a client count as one client's.
    pub clients: u64,
    /// Waiting payers of its client, including itself. All new files together are one payer.
    pub client_payers: u64,
}

/// The knobs in force for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnobValues {
    /// Percent of dirtyable memory.
    pub dirty_ratio: u64,
    /// 0: by the ratio.
    pub dirty_bytes: u64,
    /// Percent of dirtyable memory.
    pub background_ratio: u64,
    /// 0: by the ratio.
    pub background_bytes: u64,
    /// Interval of periodic writeback in hundredths of a second; 0 turns it off.
    pub background_centisecs: u64,
    /// The device's own `dirty_background_ratio`, where it has one.
    pub device_background_ratio: u64,
    /// The device's own `dirty_background_bytes`, where it has one.
    pub device_background_bytes: u64,
    /// The most bytes written of one file before the next.
    pub slice_bytes: u64,
    /// `dirty_expire_centisecs` in nanoseconds; [`u64::MAX`] while `dirty_writeback_centisecs` is 0: data then never
    /// expires.
    pub expire_ns: u64,
    /// `dirty_writeback_centisecs` in nanoseconds; 0 while it is off.
    pub interval_ns: u64,
    /// The policy's own knobs.
    pub own: PolicyKnobs,
    /// The sums of the policy's own knobs over all devices.
    pub own_sums: PolicyKnobs,
}

impl Default for KnobValues {
    /// A kernel's defaults.
    fn default() -> Self {
        Self {
            dirty_ratio: 20,
            dirty_bytes: 0,
            background_ratio: 10,
            background_bytes: 0,
            background_centisecs: 0,
            device_background_ratio: 10,
            device_background_bytes: 0,
            slice_bytes: 64 << 20,
            expire_ns: 30 * Nanos::SECOND,
            interval_ns: 5 * Nanos::SECOND,
            own: PolicyKnobs::default(),
            own_sums: PolicyKnobs::default(),
        }
    }
}

/// The most knobs that a policy may bring.
pub const POLICY_KNOBS_MAX: usize = 8;

/// Values of the knobs that the policy in force brings ([`Needs::knobs`](super::Needs::knobs)). The policy reads them
/// by its own names, which the engine does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyKnobs(pub [u64; POLICY_KNOBS_MAX]);

impl PolicyKnobs {
    /// Every knob of the table at its default.
    pub fn defaults(table: &'static KnobTable) -> Self {
        Self(std::array::from_fn(|row| table.rows.get(row).map_or(0, |info| info.default)))
    }

    /// The values of these knobs, in the order of the policy's table.
    pub fn read(knobs: &[KnobId], value: impl Fn(KnobId) -> u64) -> Self {
        Self(std::array::from_fn(|row| knobs.get(row).map_or(0, |knob| value(*knob))))
    }

    /// The value in force.
    pub fn get(&self, knob: impl TableKnob) -> u64 {
        self.0[knob.row()]
    }

    /// A copy with another value for a knob.
    #[must_use]
    pub fn with(mut self, knob: impl TableKnob, value: u64) -> Self {
        self.0[knob.row()] = value;
        self
    }
}

/// The input of a policy's decision.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Instant of the call, on the platform's clock.
    pub now: Nanos,
    /// CPUs that writers run on, at least 1.
    pub cpus: u64,
    /// All memory, in pages.
    pub memory_pages: u64,
    /// One device's equal part, in pages, of the knobs' dirty limit for all devices together.
    pub part_pages: u64,
    /// The best size of a request, in bytes: the device's preference, or its maximum.
    pub request_bytes: u64,
    /// The most bytes of a request.
    pub request_bytes_max: u64,
    /// Requests that the device takes at once.
    pub request_depth: u32,
    /// Pages that the memory guard allows the device to have dirty.
    pub guard_pages: u64,
    /// Counts of the client or file that pays for the pages.
    pub payer: PayerCounts,
    /// Values of the knobs that are in force.
    pub knobs: KnobValues,
    /// Counts of all devices together.
    pub shared: SharedCounts,
    device: DeviceCounts,
}

impl View {
    /// A snapshot of these counts.
    #[inline]
    pub fn new(now: Nanos, device: DeviceCounts) -> Self {
        Self { now, cpus: 1, device, ..Self::default() }
    }

    /// The device's own counts, for its estimators for instance.
    pub fn device(&self) -> &DeviceCounts {
        &self.device
    }
}
