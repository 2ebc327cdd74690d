//! The write speed of a device, from the kernel's counters.
//!
//! The flush budget's own estimator learns it; in place of single completions it gets the difference between two looks
//! at the counters. A look proves that a device is slow only if the device was the bottleneck: busy for at least half
//! of the time, with two requests waiting on average. A writer that syncs each of its writes, or one that writes now
//! and then, is no reason for a lower limit.
//!
//! A limit above the disk, such as a cgroup's `io.max` or the throttle of a cloud's volume, delays writes before the
//! block layer counts them: the disk looks idle and fast. But the pages of these writes are under writeback. If at one
//! look more bytes were under writeback than completed until the next, some bytes were under writeback all the time.
//! Then the device or the limit above it is the bottleneck, and the completed bytes by the clock are its speed, even if
//! the busy time is short.
//!
//! Owns: the device's own time between two looks, the proof that its writeback never ran dry.
//! Does not own: the estimate (`budget`), reading counters (`host`).
//! Invariants: a remembered speed is one of some seconds of writing. Time without a write in flight, or under
//! writeback, does not count. Looks without a completion between them are merged. A flow that may have run dry proves
//! nothing. Each cgroup is a flow of its own, since its limit is, too.

use afflux_budget::{Estimator, RememberedPrices};
use afflux_device::platform::Nanos;
use afflux_device::policy::{AtEnd, BusyTimes, Completed, Direction};

use crate::law::SECOND;

const MIB: u64 = 1 << 20;
/// Bound for a device of unknown speed: at first 32 MiB, eight times this. With each byte written the bound grows, to
/// at most twice the bytes that the device would write in its budget at its speed so far.
const FIRST_PREFERRED_BYTES: u64 = 4 * MIB;
const FIRST_BYTES: u64 = 8 * FIRST_PREFERRED_BYTES;
/// Writing without a pause that proves a speed.
const STEADY_NS: u64 = 5 * SECOND;
/// The part by which an estimate of less may exceed the last proven speed.
const UNPROVEN_PART: u128 = 4;
/// Average number of waiting requests at a device that is the bottleneck.
const DEPTH: u64 = 2;

/// A block device's counters since it appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounters {
    /// Count of completed reads.
    pub reads: u64,
    /// Bytes that these reads moved.
    pub read_bytes: u64,
    /// The sum of their times.
    pub read_ns: u64,
    /// Count of completed writes.
    pub writes: u64,
    /// Bytes that these writes moved.
    pub write_bytes: u64,
    /// The sum of their times.
    pub write_ns: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time with any request in flight.
    pub busy_ns: u64,
    /// The sum of the times of flushes.
    pub flush_ns: u64,
}

/// The figures of a look.
#[derive(Clone, Debug)]
struct Look {
    now_ns: u64,
    counters: BlockCounters,
    /// None if it cannot be seen.
    backlog: Option<Backlog>,
}

/// The estimate of a device's speed.
#[derive(Clone, Debug)]
pub struct Speed {
    estimator: Estimator,
    last: Option<Look>,
    clocks: BusyTimes,
    written_bytes: u64,
    is_known: bool,
    /// How long the device has been the bottleneck without a pause.
    steady_ns: u64,
    /// The prices when it last was for [`STEADY_NS`], or the remembered ones.
    proven: Option<RememberedPrices>,
}

impl Speed {
    /// An estimate that begins with the remembered prices, if there are any.
    pub fn new(remembered: Option<&RememberedPrices>) -> Self {
        let estimator = remembered.map_or_else(|| Estimator::new(1), |kept| Estimator::restored(1, kept));
        let (is_known, proven) = (remembered.is_some(), remembered.copied());
        Self { estimator, last: None, clocks: BusyTimes::default(), written_bytes: 0, is_known, steady_ns: 0, proven }
    }

    /// Takes a look at the counters, without a backlog.
    pub fn look(&mut self, now_ns: u64, counters: &BlockCounters) {
        self.look_behind(now_ns, counters, None);
    }

    /// Takes a look at the counters and at the bytes under writeback.
    pub fn look_behind(&mut self, now_ns: u64, counters: &BlockCounters, backlog: Option<Backlog>) {
        let look = Look { now_ns, counters: *counters, backlog };
        let Some(before) = &self.last else {
            self.last = Some(look);
            return;
        };
        let Some(done) = counters.since(&before.counters) else {
            // This is another device, or the counters have restarted.
            self.last = Some(look);
            return;
        };
        let since = look.backlog.as_ref().zip(before.backlog.as_ref()).map(|(now, then)| now.since(then));
        let idle = done.writes == 0 && done.reads == 0;
        let waits =
            counters.in_flight > 0 || look.backlog.as_ref().is_some_and(|backlog| backlog.writeback_bytes() > 0);
        if idle && waits {
            return;
        }
        let passed_ns = now_ns.saturating_sub(before.now_ns);
        self.last = Some(look);
        if idle {
            self.steady_ns = 0;
        } else {
            self.learn(passed_ns, now_ns, &done, counters.in_flight, since.unwrap_or(Since::MayBeDry));
        }
    }

    fn learn(&mut self, passed_ns: u64, now_ns: u64, done: &BlockCounters, in_flight: u64, since: Since) {
        let never_dry = since == Since::NeverDry;
        let busy_ns = if never_dry { passed_ns } else { done.busy_ns.min(passed_ns) };
        let write_ns = if never_dry { busy_ns } else { done.write_ns };
        let (reads_ns, writes_ns) = (done.read_ns.min(busy_ns), write_ns.min(busy_ns));
        let transfers_ns = (reads_ns + writes_ns).min(busy_ns);
        let clocks = &mut self.clocks;
        clocks.reads_ns += reads_ns;
        clocks.writes_ns += writes_ns;
        clocks.transfers_ns += transfers_ns;
        clocks.held_up_ns += done.flush_ns.min(transfers_ns);
        let device = AtEnd { busy: *clocks, ..AtEnd::default() };
        let (at, more_to_write) = (Nanos(now_ns), in_flight > 0 || never_dry);
        let had_queue = busy_ns >= passed_ns / 2 && done.write_ns >= writes_ns.saturating_mul(DEPTH);
        let was_bottleneck = never_dry || had_queue;
        // The disk may have completed these bytes at once, while a limit above it delays the rest.
        let write_bytes = if since == Since::FallsBehind && !was_bottleneck { 0 } else { done.write_bytes };
        let doubtful_ns = if was_bottleneck { 0 } else { writes_ns };
        let ends = [(Direction::Read, done.read_bytes, 0), (Direction::Write, write_bytes, doubtful_ns)];
        for (direction, bytes, unwatched_ns) in ends {
            if bytes > 0 {
                let rest = Completed::default();
                let done = Completed { direction, at, device, more_to_write, bytes, unwatched_ns, ..rest };
                self.estimator.completed(&done, false);
            }
        }
        self.written_bytes = self.written_bytes.saturating_add(done.write_bytes);
        self.is_known |= !self.estimator.is_cold();
        self.steady_ns = if was_bottleneck { self.steady_ns.saturating_add(passed_ns) } else { 0 };
        if self.is_steady() {
            self.proven = self.estimator.remembered();
        }
    }

    /// Whether the estimate is of seconds of writing. After a pause, a cache takes the first bytes faster than the
    /// device writes.
    fn is_steady(&self) -> bool {
        self.steady_ns >= STEADY_NS
    }

    /// Bytes a second, once enough is known.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let mib_ns = self.estimator.learned(Direction::Write).mib_ns.max(1);
        self.is_known.then(|| MIB * SECOND / mib_ns)
    }

    /// Bytes that the device writes within a budget. For a device of unknown speed this is a bound from its writes so
    /// far.
    pub fn bytes_in(&self, budget_ns: u64) -> u64 {
        let mib_ns = self.estimator.prices(budget_ns, FIRST_PREFERRED_BYTES).mib_ns.max(1);
        let bytes = u128::from(budget_ns) * u128::from(MIB) / u128::from(mib_ns);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if let Some(proven) = self.proven.as_ref().filter(|_| self.is_known && !self.is_steady()) {
            let proven = u128::from(budget_ns) * u128::from(MIB) / u128::from(proven.write_mib_ns.max(1));
            return bytes.min(u64::try_from(proven + proven / UNPROVEN_PART).unwrap_or(u64::MAX));
        }
        if self.is_known {
            return bytes;
        }
        // Otherwise the limit of a slow device rises for seconds before it falls, and then writers must wait for that.
        let so_far = u128::from(self.written_bytes) * 2 * u128::from(budget_ns);
        let so_far = so_far.checked_div(u128::from(self.clocks.writes_ns)).unwrap_or(0);
        bytes.min(u64::try_from(so_far).unwrap_or(u64::MAX).max(FIRST_BYTES))
    }

    /// The prices to persist until the next start: those of the last seconds of writing without a pause. None before
    /// that.
    pub fn remembered(&self) -> Option<RememberedPrices> {
        self.proven
    }
}

impl BlockCounters {
    /// The difference to an earlier look; none if any counter has gone back.
    fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            reads: self.reads.checked_sub(before.reads)?,
            read_bytes: self.read_bytes.checked_sub(before.read_bytes)?,
            read_ns: self.read_ns.checked_sub(before.read_ns)?,
            writes: self.writes.checked_sub(before.writes)?,
            write_bytes: self.write_bytes.checked_sub(before.write_bytes)?,
            write_ns: self.write_ns.checked_sub(before.write_ns)?,
            in_flight: self.in_flight,
            busy_ns: self.busy_ns.checked_sub(before.busy_ns)?,
            flush_ns: self.flush_ns.checked_sub(before.flush_ns)?,
        })
    }
}

/// Flows that ran dry may have at most this part of the written bytes.
const DRY_PART: u64 = 8;

/// The kernel's writeback to a device for one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The cgroup's inode.
    pub cgroup: u64,
    /// Bytes under writeback now.
    pub writeback_bytes: u64,
    /// Bytes written back since the device appeared.
    pub written_bytes: u64,
}

/// All flows to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog(Vec<Flow>);

/// The conclusion from two backlogs about the time between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// The flows with nearly all written bytes never ran dry: each had more under writeback at the start than was
    /// written.
    NeverDry,
    /// It began with fewer bytes, and now has more under writeback than were written meanwhile: the cause is not known.
    FallsBehind,
    /// It may have run dry.
    MayBeDry,
}

impl Backlog {
    /// The backlog of these flows.
    pub fn new(flows: Vec<Flow>) -> Self {
        Self(flows)
    }

    /// Bytes under writeback now.
    pub fn writeback_bytes(&self) -> u64 {
        self.0.iter().map(|flow| flow.writeback_bytes).sum()
    }

    pub(super) fn since(&self, before: &Self) -> Since {
        let (mut written, mut proven) = (0_u64, 0_u64);
        for now in &self.0 {
            let then = before.0.iter().find(|flow| flow.cgroup == now.cgroup).copied().unwrap_or_default();
            let bytes = now.written_bytes.saturating_sub(then.written_bytes);
            written += bytes;
            proven += if bytes <= then.writeback_bytes { bytes } else { 0 };
        }
        match self.writeback_bytes() {
            _ if written > 0 && written - proven <= written / DRY_PART => Since::NeverDry,
            left if left > 0 && left >= written => Since::FallsBehind,
            _ => Since::MayBeDry,
        }
    }
}

#[cfg(test)]
mod tests;
