//! The write throttle of OpenZFS, as far as the seam can say it.
//!
//! All devices together may have 410 MiB dirty: `zfs_dirty_data_max`, a tenth of a memory of 4 GiB. From 60 percent of
//! it on (`zfs_delay_min_dirty_percent`), each transaction takes at least 500 us times (dirty - start) / (limit -
//! dirty) (`zfs_delay_scale`), and at most 100 ms. The transactions of all writers take turns for this delay, so its
//! length does not depend on how many there are. At the limit writers stop. All dirty data are written from 20 percent
//! on (`zfs_dirty_data_sync_percent`), or once they are 5 s old (`zfs_txg_timeout`, a knob of the setup). Source: "ZFS
//! Transaction Delay" and "Module parameters" in the OpenZFS documentation. A transaction here is a write call, or 64
//! KiB of one; in OpenZFS it is a record.
//!
//! Left out: transaction groups that are written as a whole, a number of requests in flight that depends on the amount
//! of dirty data, metadata.
//!
//! Owns: the curve. Does not own: the order among writers beyond it.
//! Invariants: a pause ends; each writer passes the limit by at most one transaction.

use afflux_engine::Nanos;
use afflux_engine::policy::{
    Admission, Completed, Cost, DevicePolicy, LentMemory, LimitPages, Needs, Pace, Pause, PauseCause, Room, View,
};

/// Pages of 410 MiB.
const LIMIT_PAGES: u64 = 410 << 8;
const DELAYED_FROM_PAGES: u64 = LIMIT_PAGES * 60 / 100;
const WRITTEN_FROM_PAGES: u64 = LIMIT_PAGES * 20 / 100;
/// A transaction's least time when half of the room above the start is used up.
const SCALE_NS: u64 = 500_000;
const DELAY_NS_MAX: u64 = 100 * Nanos::MILLISECOND;
/// How often a stopped writer looks whether it may go on. OpenZFS wakes the writer instead.
const LOOK_NS: u64 = Nanos::MILLISECOND;
/// Longer than the delays of all writers that an experiment here has.
const PAUSE_NS_MAX: u64 = 1000 * DELAY_NS_MAX;

/// The policy.
pub(super) struct ZfsLike;

/// The delay of the next transaction.
fn delay_ns(dirty_pages: u64) -> u64 {
    let over = dirty_pages.saturating_sub(DELAYED_FROM_PAGES);
    let left = LIMIT_PAGES.saturating_sub(dirty_pages);
    (SCALE_NS * over).checked_div(left).unwrap_or(DELAY_NS_MAX).min(DELAY_NS_MAX)
}

impl DevicePolicy for ZfsLike {
    /// Whether the writer has been delayed for what it wants to dirty.
    type Payer = bool;
    type Device = ();
    /// The instant until which the last transaction is delayed, in nanoseconds.
    type Shared = u64;

    fn name(&self) -> &'static str {
        "zfs-like"
    }

    fn needs(&self) -> Needs {
        Needs { admits: true, shared_counters: true, memory_guard: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        PAUSE_NS_MAX
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn room(&self, _: &View, (): &mut ()) -> Room {
        Room { wake_above: Cost(WRITTEN_FROM_PAGES), ..Room::UNLIMITED }
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        (memory.pace.unpaid_pages, memory.pace.unpaid_runs) = (0, 0);
        let dirty = view.shared.dirty + view.shared.writeback;
        let pause = |ns| Admission::Pause(Pause { ns, cause: PauseCause::GlobalLimit });
        // A writer that was delayed enters.
        if std::mem::take(memory.payer) {
            return Admission::Enter;
        }
        if dirty >= LIMIT_PAGES {
            return pause(LOOK_NS);
        }
        let delay_ns = delay_ns(dirty);
        if delay_ns == 0 {
            return Admission::Enter;
        }
        let goes_on_ns = view.now.0.max(*memory.shared) + delay_ns;
        *memory.shared = goes_on_ns;
        *memory.payer = true;
        pause((goes_on_ns - view.now.0).min(PAUSE_NS_MAX))
    }

    fn completed(&self, _: &View, _: &[Completed], (): &mut (), _: &mut u64) {}

    fn is_over_background(&self, view: &View, (): &mut (), _: &mut u64) -> bool {
        let device = view.device();
        // A flush that has begun writes everything, as a transaction group does.
        device.reclaimable > if device.flushing { 0 } else { WRITTEN_FROM_PAGES }
    }

    fn slice_bytes(&self, view: &View, (): &mut (), _: &mut u64) -> u64 {
        view.knobs.slice_bytes
    }

    fn limits(&self, _: &View, (): &mut (), _: &mut u64) -> LimitPages {
        LimitPages { dirty: LIMIT_PAGES, background: WRITTEN_FROM_PAGES, bandwidth: None }
    }
}

#[cfg(test)]
mod tests;
