//! The snapshot that a policy decides from.
//!
//! Owns: what stands in it and its units; the tally of what a policy reads of it.
//! Does not own: taking it (`throttle`), what is made of it (`seam`).
//! Invariants: plain values, so that a decision can be replayed from a table. The engine fills it with
//! one read of each shared counter, of those that the policy needs; a policy that asks twice for a figure is
//! counted twice, since the kernel that it describes reads the counter twice.

use std::cell::Cell;

use crate::platform::Nanos;
use crate::settings::{KnobId, KnobTable, TableKnob};

/// What all devices share, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalCounts {
    /// Free frames.
    pub free: u64,
    /// Free frames that ordinary allocations do not get.
    pub reserve: u64,
    /// Anonymous memory, used lately: none here.
    pub active_anon: u64,
    /// Anonymous memory, not used lately: none here.
    pub inactive_anon: u64,
    /// File pages, used lately.
    pub active_file: u64,
    /// File pages, not used lately; dirty ones are among them.
    pub inactive_file: u64,
    /// Dirty, without those under writeback.
    pub dirty: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Under writeback through a copy: none here.
    pub writeback_copy: u64,
    /// Written to a server and not committed there: none here.
    pub unstable: u64,
}

/// One of [`GlobalCounts`], to read it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// [`GlobalCounts::free`].
    Free,
    /// [`GlobalCounts::active_anon`].
    ActiveAnon,
    /// [`GlobalCounts::inactive_anon`].
    InactiveAnon,
    /// [`GlobalCounts::active_file`].
    ActiveFile,
    /// [`GlobalCounts::inactive_file`].
    InactiveFile,
    /// [`GlobalCounts::dirty`].
    Dirty,
    /// [`GlobalCounts::writeback`].
    Writeback,
    /// [`GlobalCounts::writeback_copy`].
    WritebackCopy,
    /// [`GlobalCounts::unstable`].
    Unstable,
}

impl Global {
    /// Whether it counts what an engine has none of, and so is always 0.
    fn is_absent(self) -> bool {
        matches!(self, Self::ActiveAnon | Self::InactiveAnon | Self::WritebackCopy | Self::Unstable)
    }
}

/// For how long a device had what in flight, since the engine started. A clock runs while anything of its kind is in
/// flight, however much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Reads or writes. Time with nothing but flushes and other calls in flight is not in it.
    pub transfers_ns: u64,
    /// Reads.
    pub reads_ns: u64,
    /// Writes.
    pub writes_ns: u64,
    /// Flushes and other calls that move no bytes, and no reads or writes. Where a device keeps writes in volatile
    /// memory, a flush may take the time that these would have.
    pub calls_alone_ns: u64,
    /// The part of `transfers_ns` for which a call may have held reads and writes up: it was in flight beside them and
    /// ended before any of them did.
    pub held_up_ns: u64,
}

/// One device, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Dirty, without those under writeback.
    pub reclaimable: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Dirtied since the engine started.
    pub dirtied: u64,
    /// Written since the engine started.
    pub written: u64,
    /// Pages a second that it writes, by the engine's own measure; 0 if unknown.
    pub bandwidth: u64,
    /// Background writeback is under way.
    pub flushing: bool,
    /// Runs of dirty pages, and write requests in flight that do not continue the one before.
    pub runs: u64,
    /// Bytes of write requests in flight.
    pub bytes_in_flight: u64,
    /// Write requests in flight.
    pub writes_in_flight: u64,
    /// Of these, those that do not continue the one before.
    pub runs_in_flight: u64,
    /// Read requests in flight.
    pub reads_in_flight: u64,
    /// Flushes and other calls in flight that move no bytes.
    pub calls_in_flight: u64,
    /// When the last read or call ended: somebody waited for it, and may ask for the next.
    pub waited_for_at: Option<Nanos>,
    /// Bytes read since the engine started.
    pub read_bytes: u64,
    /// For how long it had what in flight.
    pub busy: BusyTimes,
    /// When the oldest of the reads and writes in flight was submitted.
    pub oldest_in_flight: Option<Nanos>,
    /// Payers that wait, whatever for.
    pub payers_waiting: u64,
}

/// The payer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayerCounts {
    /// Pages dirtied since they were last taken into account.
    pub dirtied: u64,
    /// Runs of dirty pages that it began in the meantime.
    pub runs: u64,
    /// Pages that it is about to dirty, if it is asked about before that.
    pub wanted: u64,
    /// The first of them in its file.
    pub wanted_at: u64,
    /// Which snapshot of the call this is, from 0.
    pub pass: u32,
    /// Pages written by the payer itself in this call.
    pub written: u64,
    /// Pages of the last [`WriteBack`](super::Admission::WriteBack) that were written.
    pub written_last: u64,
    /// Clients of whom a payer waits, its own included, if it is asked about before it dirties more. Payers without a
    /// client are one client's.
    pub clients: u64,
    /// Payers of its client that wait, itself included. Files that are new are one payer together.
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
    /// 0: off.
    pub background_centisecs: u64,
    /// The device's own `dirty_background_ratio`, where it has one.
    pub device_background_ratio: u64,
    /// The device's own `dirty_background_bytes`, where it has one.
    pub device_background_bytes: u64,
    /// Most that is written of one file before the next.
    pub slice_bytes: u64,
    /// `dirty_expire_centisecs` in nanoseconds; [`u64::MAX`] while `dirty_writeback_centisecs` is 0, so that nothing
    /// gets old.
    pub expire_ns: u64,
    /// The policy's own.
    pub own: PolicyKnobs,
    /// The policy's own, each the sum over all devices.
    pub own_sums: PolicyKnobs,
}

impl Default for KnobValues {
    /// A kernel's.
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
            own: PolicyKnobs::default(),
            own_sums: PolicyKnobs::default(),
        }
    }
}

/// Most knobs that a policy may have of its own.
pub const POLICY_KNOBS_MAX: usize = 8;

/// Values of the knobs that the policy in force brings ([`Needs::knobs`](super::Needs::knobs)), which it reads by its
/// own names for them; the engine knows none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicyKnobs(pub(crate) [u64; POLICY_KNOBS_MAX]);

impl PolicyKnobs {
    /// Every knob of the table at its default.
    pub fn defaults(table: &'static KnobTable) -> Self {
        Self(std::array::from_fn(|row| table.rows.get(row).map_or(0, |info| info.default)))
    }

    /// The values of the knobs in these places, in the order of the policy's table.
    pub(crate) fn read(knobs: &[KnobId], value: impl Fn(KnobId) -> u64) -> Self {
        Self(std::array::from_fn(|row| knobs.get(row).map_or(0, |knob| value(*knob))))
    }

    /// The value in force.
    pub fn get(&self, knob: impl TableKnob) -> u64 {
        self.0[knob.row()]
    }

    /// The same with another value, to decide from.
    #[must_use]
    pub fn with(mut self, knob: impl TableKnob, value: u64) -> Self {
        self.0[knob.row()] = value;
        self
    }
}

/// How often a policy read what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Counters that all devices share.
    pub global: u64,
    /// Of these, what is dirty, under writeback or unstable.
    pub dirty: u64,
    /// Counters of one device.
    pub device: u64,
}

/// What a policy decides from.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The instant.
    pub now: Nanos,
    /// CPUs that writers run on, at least 1.
    pub cpus: u64,
    /// All memory, in pages.
    pub memory_pages: u64,
    /// One device's equal part, in pages, of what the knobs allow all devices together to have dirty.
    pub part_pages: u64,
    /// Bytes of a request that suit the device best: its preference, or the most that it takes.
    pub request_bytes: u64,
    /// The most bytes of a request.
    pub request_bytes_max: u64,
    /// Requests that the device takes at once.
    pub request_depth: u32,
    /// Pages that the device may have on top of what its policy gives it: writes of them failed, and the device's
    /// other writers are not to pay for that.
    pub failed_room_pages: u64,
    /// Pages that the memory guard lets the device have dirty.
    pub guard_pages: u64,
    /// The payer.
    pub payer: PayerCounts,
    /// Knobs.
    pub knobs: KnobValues,
    global: GlobalCounts,
    device: DeviceCounts,
    reads: Cell<Reads>,
    absent_reads: Cell<u64>,
}

impl View {
    /// A snapshot of these counts.
    #[inline]
    pub fn new(now: Nanos, global: GlobalCounts, device: DeviceCounts) -> Self {
        Self { now, cpus: 1, global, device, ..Self::default() }
    }

    /// Shows nothing any more of what devices share, for questions that may not depend on it.
    pub(crate) fn forget_global(&mut self) {
        self.global = GlobalCounts::default();
    }

    /// Reads a shared counter.
    pub fn read(&self, which: Global) -> u64 {
        let mut reads = self.reads.get();
        reads.global += 1;
        let counts = &self.global;
        let (value, dirty) = match which {
            Global::Free => (counts.free, false),
            Global::ActiveAnon => (counts.active_anon, false),
            Global::InactiveAnon => (counts.inactive_anon, false),
            Global::ActiveFile => (counts.active_file, false),
            Global::InactiveFile => (counts.inactive_file, false),
            Global::Dirty => (counts.dirty, true),
            Global::Writeback => (counts.writeback, true),
            Global::WritebackCopy => (counts.writeback_copy, true),
            Global::Unstable => (counts.unstable, true),
        };
        reads.dirty += u64::from(dirty);
        self.reads.set(reads);
        self.absent_reads.update(|count| count + u64::from(which.is_absent()));
        value
    }

    fn read_device(&self) -> &DeviceCounts {
        let mut reads = self.reads.get();
        reads.device += 1;
        self.reads.set(reads);
        &self.device
    }

    /// Reads how many pages of the device are dirty and not under writeback.
    pub fn device_reclaimable(&self) -> u64 {
        self.read_device().reclaimable
    }

    /// Reads how many pages of the device are under writeback.
    pub fn device_writeback(&self) -> u64 {
        self.read_device().writeback
    }

    /// What is the device's own business, such as what its estimators look at: not tallied.
    pub fn device(&self) -> &DeviceCounts {
        &self.device
    }

    /// Pages that ordinary allocations do not get: a constant of the machine, not tallied.
    pub fn reserve_pages(&self) -> u64 {
        self.global.reserve
    }

    /// How many of the reads of shared counters were of what no engine has.
    pub fn absent_reads(&self) -> u64 {
        self.absent_reads.get()
    }

    /// What was read of it so far.
    pub fn reads(&self) -> Reads {
        self.reads.get()
    }
}
