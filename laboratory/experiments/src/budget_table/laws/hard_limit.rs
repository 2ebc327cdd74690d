//! A plain limit: all devices together may have 64 MiB dirty, and a writer that finds no room waits.
//!
//! This is the simplest law. Linux comes close to it with a small `vm.dirty_bytes` and no rate control: before 3.2, a
//! writer above the limit waited for the device (`mm/page-writeback.c`). The amount is a choice: enough for a fast
//! disk's queue, and 2.7 s of a slow disk. The flusher writes from a quarter of it on.
//!
//! Owns: the limit. Does not own: an order among the waiting writers.
//! Invariants: each writer passes the limit by at most one write.

use afflux_engine::Nanos;
use afflux_engine::policy::{
    Admission, Completed, Cost, DevicePolicy, LentMemory, LimitPages, Needs, Pace, Pause, PauseCause, Room, View,
};

/// Pages of 64 MiB.
const LIMIT_PAGES: u64 = 64 << 8;
const WRITTEN_FROM_PAGES: u64 = LIMIT_PAGES / 4;
/// How often a waiting writer looks whether there is room.
const LOOK_NS: u64 = Nanos::MILLISECOND;

/// The policy.
pub(super) struct HardLimit;

impl DevicePolicy for HardLimit {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        "hard limit"
    }

    fn needs(&self) -> Needs {
        Needs { admits: true, shared_counters: true, memory_guard: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        LOOK_NS
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn room(&self, _: &View, (): &mut ()) -> Room {
        Room { wake_above: Cost(WRITTEN_FROM_PAGES), ..Room::UNLIMITED }
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        (memory.pace.unpaid_pages, memory.pace.unpaid_runs) = (0, 0);
        if view.shared.dirty + view.shared.writeback < LIMIT_PAGES {
            return Admission::Enter;
        }
        Admission::Pause(Pause { ns: LOOK_NS, cause: PauseCause::GlobalLimit })
    }

    fn completed(&self, _: &View, _: &[Completed], (): &mut (), (): &mut ()) {}

    fn is_over_background(&self, view: &View, (): &mut (), (): &mut ()) -> bool {
        view.device().reclaimable > WRITTEN_FROM_PAGES
    }

    fn slice_bytes(&self, view: &View, (): &mut (), (): &mut ()) -> u64 {
        view.knobs.slice_bytes
    }

    fn limits(&self, _: &View, (): &mut (), (): &mut ()) -> LimitPages {
        LimitPages { dirty: LIMIT_PAGES, background: WRITTEN_FROM_PAGES, bandwidth: None }
    }
}
