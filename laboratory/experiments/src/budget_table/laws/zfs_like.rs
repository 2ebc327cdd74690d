//! The write throttle of OpenZFS, as far as the seam can say it.
//!
//! All devices together may have 410 MiB dirty: `zfs_dirty_data_max`, a tenth of a memory of 4 GiB. From 60 percent
//! of it on (`zfs_delay_min_dirty_percent`) each transaction takes at least 500 us times (dirty - start) / (limit -
//! dirty) (`zfs_delay_scale`), 100 ms at most, and the transactions of all writers take turns with that, so that how
//! long one takes does not depend on how many there are. At the limit writers stop. From 20 percent
//! (`zfs_dirty_data_sync_percent`) all that is dirty is written, or once it is 5 s old (`zfs_txg_timeout`, a knob of the
//! setup). Source: "ZFS Transaction Delay" and "Module parameters" in the OpenZFS documentation. A transaction is a
//! write call, or 64 KiB of one (there: a record).
//!
//! Left out: groups of transactions that are written as a whole, how many requests are in flight by how much is
//! dirty, metadata.
//!
//! Owns: the curve. Does not own: who takes turns with whom beyond it.
//! Invariants: a pause ends; the limit is passed by one transaction a writer at most.

use afflux_engine::Nanos;
use afflux_engine::policy::{
    Admission, Asked, Completed, Cost, DevicePolicy, Global, LimitPages, Memory, Needs, Pace, Pause, PauseCause, Room,
    Then, View, WokenBy,
};

/// Pages of 410 MiB.
const LIMIT_PAGES: u64 = 410 << 8;
const DELAYED_FROM_PAGES: u64 = LIMIT_PAGES * 60 / 100;
const WRITTEN_FROM_PAGES: u64 = LIMIT_PAGES * 20 / 100;
/// A transaction's least time where half of what lies above the start is used up.
const SCALE_NS: u64 = 500_000;
const DELAY_NS_MAX: u64 = 100 * Nanos::MILLISECOND;
/// How often a writer that is stopped looks whether it may go on; there it is woken.
const LOOK_NS: u64 = Nanos::MILLISECOND;
/// More than as many writers as there are here take turns for.
const PAUSE_NS_MAX: u64 = 1000 * DELAY_NS_MAX;

/// The policy.
pub(super) struct ZfsLike;

/// The time of the transaction that comes next.
fn delay_ns(dirty_pages: u64) -> u64 {
    let over = dirty_pages.saturating_sub(DELAYED_FROM_PAGES);
    let left = LIMIT_PAGES.saturating_sub(dirty_pages);
    (SCALE_NS * over).checked_div(left).unwrap_or(DELAY_NS_MAX).min(DELAY_NS_MAX)
}

impl DevicePolicy for ZfsLike {
    type Payer = ();
    type Device = ();
    /// When the last transaction that was put off goes on, in nanoseconds.
    type Shared = u64;

    fn name(&self) -> &'static str {
        "zfs-like"
    }

    fn needs(&self) -> Needs {
        Needs { asked: Asked::Before, shared_counters: true, memory_guard: true, ..Needs::NONE }
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

    fn admit(&self, view: &View, memory: Memory<'_, Self>) -> Admission {
        (memory.pace.unpaid_pages, memory.pace.unpaid_runs) = (0, 0);
        let dirty = view.read(Global::Dirty) + view.read(Global::Writeback);
        let pause = |ns: u64, then| {
            let (cause, woken_by) = (PauseCause::GlobalLimit, WokenBy::Time);
            Admission::Pause(Pause { ns, cause, woken_by, then })
        };
        if dirty >= LIMIT_PAGES {
            return pause(LOOK_NS, Then::Decide);
        }
        let delay_ns = delay_ns(dirty);
        if delay_ns == 0 {
            return Admission::Enter;
        }
        let goes_on_ns = view.now.0.max(*memory.shared) + delay_ns;
        *memory.shared = goes_on_ns;
        pause((goes_on_ns - view.now.0).min(PAUSE_NS_MAX), Then::Return)
    }

    fn completed(&self, _: &View, _: &Completed, (): &mut (), _: &mut u64) {}

    fn over_background(&self, view: &View, (): &mut (), _: &mut u64) -> bool {
        let device = view.device();
        // What has begun is written to its end, as a group is.
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
