//! Laws that stop writers at a limit of all devices together: a plain limit, and the write throttle of OpenZFS, as far
//! as the seam can say it.
//!
//! Under the plain limit, the simplest law, all devices together may have 64 MiB dirty, and a writer that exceeds the
//! limit waits. Linux comes close to it with a small `vm.dirty_bytes` and no rate control: before 3.2, a writer above
//! the limit waited for the device (`mm/page-writeback.c`). The amount is a choice: enough for a fast disk's queue, and
//! 2.7 s of a slow disk. The flusher writes from a quarter of it on.
//!
//! Under OpenZFS these are 410 MiB: `zfs_dirty_data_max`, a tenth of a memory of 4 GiB. From 60 percent of it on
//! (`zfs_delay_min_dirty_percent`), each transaction takes at least 500 us times (dirty - start) / (limit - dirty)
//! (`zfs_delay_scale`), and at most 100 ms. The transactions of all writers take this delay one after the other, so its
//! length does not depend on how many there are. All dirty data are written from 20 percent on
//! (`zfs_dirty_data_sync_percent`), or once they are 5 s old (`zfs_txg_timeout`, a knob of the setup). Source: "ZFS
//! Transaction Delay" and "Module parameters" in the OpenZFS documentation. A transaction here is a write call, or 64
//! KiB of one; in OpenZFS it is a record. Left out: transaction groups that are written as a whole, a number of
//! requests in flight that depends on the amount of dirty data, metadata.
//!
//! Owns: the limits, the curve. Does not own: an order among the waiting writers beyond it.
//! Invariants: a pause ends; each writer passes the limit by at most one write or transaction
//! (`writers_take_turns_and_stop_at_the_limit`).

use afflux_engine::Nanos;
use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, Cost, DevicePolicy, LentMemory, LimitPages, Needs, Pace, Pause, PauseCause,
    View,
};

/// A transaction's least time when half of the range above the start is used up.
const SCALE_NS: u64 = 500_000;
const DELAY_NS_MAX: u64 = 100 * Nanos::MILLISECOND;
/// How often a stopped writer looks whether it may go on. OpenZFS wakes the writer instead.
const LOOK_NS: u64 = Nanos::MILLISECOND;

/// The policy.
pub(super) struct StopAtLimit {
    name: &'static str,
    limit_pages: u64,
    /// Writers are delayed from here on.
    delayed_from_pages: u64,
    written_from_pages: u64,
    /// Whether a flush that has begun writes everything, as a transaction group does.
    writes_all: bool,
    pause_ns_max: u64,
}

/// 64 MiB.
pub(super) const PLAIN: StopAtLimit = StopAtLimit {
    name: "hard limit",
    limit_pages: 64 << 8,
    delayed_from_pages: 64 << 8,
    written_from_pages: (64 << 8) / 4,
    writes_all: false,
    pause_ns_max: LOOK_NS,
};

/// 410 MiB.
pub(super) const ZFS_LIKE: StopAtLimit = StopAtLimit {
    name: "zfs-like",
    limit_pages: 410 << 8,
    delayed_from_pages: (410 << 8) * 60 / 100,
    written_from_pages: (410 << 8) * 20 / 100,
    writes_all: true,
    // Longer than the delays of all writers that an experiment here has.
    pause_ns_max: 1000 * DELAY_NS_MAX,
};

impl StopAtLimit {
    /// The delay of the next transaction.
    fn delay_ns(&self, dirty_pages: u64) -> u64 {
        let over = dirty_pages.saturating_sub(self.delayed_from_pages);
        let left = self.limit_pages.saturating_sub(dirty_pages);
        (SCALE_NS * over).checked_div(left).unwrap_or(DELAY_NS_MAX).min(DELAY_NS_MAX)
    }
}

impl DevicePolicy for StopAtLimit {
    /// Whether the writer has been delayed for what it wants to dirty.
    type Payer = bool;
    type Device = ();
    /// The instant until which the last transaction is delayed, in nanoseconds.
    type Shared = u64;

    fn name(&self) -> &'static str {
        self.name
    }

    fn needs(&self) -> Needs {
        Needs { admits: true, shared_counters: true, memory_guard: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        self.pause_ns_max
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn charge_bounds(&self, _: &View, (): &mut ()) -> ChargeBounds {
        ChargeBounds { wake_above: Cost(self.written_from_pages), ..ChargeBounds::UNLIMITED }
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        (memory.pace.unpaid_pages, memory.pace.unpaid_runs) = (0, 0);
        let dirty = view.shared.dirty + view.shared.writeback;
        let pause = |ns| Admission::Pause(Pause { ns, cause: PauseCause::GlobalLimit });
        // A writer that was delayed enters.
        if std::mem::take(memory.payer) {
            return Admission::Enter;
        }
        if dirty >= self.limit_pages {
            return pause(LOOK_NS);
        }
        let delay_ns = self.delay_ns(dirty);
        if delay_ns == 0 {
            return Admission::Enter;
        }
        let goes_on_ns = view.now.0.max(*memory.shared) + delay_ns;
        *memory.shared = goes_on_ns;
        *memory.payer = true;
        pause((goes_on_ns - view.now.0).min(self.pause_ns_max))
    }

    fn completed(&self, _: &View, _: &[Completed], (): &mut (), _: &mut u64) {}

    fn is_over_background(&self, view: &View, (): &mut (), _: &mut u64) -> bool {
        let device = view.device();
        device.reclaimable > if self.writes_all && device.flushing { 0 } else { self.written_from_pages }
    }

    fn slice_bytes(&self, view: &View, (): &mut (), _: &mut u64) -> u64 {
        view.knobs.slice_bytes
    }

    fn limits(&self, _: &View, (): &mut (), _: &mut u64) -> LimitPages {
        LimitPages { dirty: self.limit_pages, background: self.written_from_pages, bandwidth: None }
    }
}

#[cfg(test)]
mod tests;
