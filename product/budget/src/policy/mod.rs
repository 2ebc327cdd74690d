//! The law in force: answers to the engine's seam, in device time.
//!
//! Owns: the answers. Does not own: the terms that they are made from (`device_view`, `rates`), the arithmetic (the
//! crate's other modules), any action (the engine).
//! Invariants: a decision reads its own device and the memory guard's limit for it, and nothing that devices share. A
//! payer's debt is counted at the prices of the moment of the question.

mod account;
mod device;
mod device_view;
mod explain;
mod idle;
mod portions;
mod rates;

use afflux_device::platform::Nanos;
use afflux_device::policy::{
    Admission, ChargeBounds, Completed, Cost as Amount, DevicePolicy, DirtyFiles, Figure, Flight, FlushSlice,
    HangLimits, IdleWriteRule, IgnoredKnob, KnobInForce, LentMemory, LimitPages, Needs, Next, Pace, Pause, PauseCause,
    Remembered, Rewrites, View,
};

pub use self::account::PayerMemory;
use self::account::{PORTION_PIECE_PAGES, Pausing};
pub use self::device::DeviceMemory;
use self::device_view::DeviceView;
pub use self::explain::FIGURES;
use self::rates::{Rates, must_take_whole_runs};
use crate::payer::PAUSE_NS_MAX;
use crate::prices::{DirectionWork, PAGE_BYTES};
use crate::{Cost, KNOBS, MIB, MILLISECOND, RememberedPrices, Verdict, snapshot_debt_ns};

/// The name of this policy: what runs if nothing is asked for.
pub const OWN_POLICY: &str = "afflux";

/// How far syncs may be ahead of other writes before the two alternate, in budgets. A sync pays twice for its runs, so
/// that a sync of everything that a device owes goes first, to its end.
const SYNC_TIMES: Cost = 2;
/// Slices end at multiples of this in a file: flash writes blocks of this size, and file systems align extents to it.
const SLICE_ALIGN_BYTES: u64 = 8 * MIB;
/// A file is worth staying on for the time of so many runs.
const SLICE_RUNS: Cost = 4;

/// Knobs in pages and requests: this law has device time in place of them.
const IGNORED: [IgnoredKnob; 4] = [
    IgnoredKnob { name: "dirty_background_ratio", instead: "dirty_background_bytes or dirty_background_centisecs" },
    IgnoredKnob { name: "writeback_slice_bytes", instead: "budget_ms" },
    IgnoredKnob { name: "writeback_depth", instead: "writeback_in_flight_ms" },
    IgnoredKnob { name: "writeback_request_batch", instead: "writeback_in_flight_ms" },
];

/// The policy that limits dirty pages by their devices' write time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget;

impl DevicePolicy for Budget {
    type Payer = PayerMemory;
    type Device = DeviceMemory;
    type Shared = ();

    fn name(&self) -> &'static str {
        OWN_POLICY
    }

    fn needs(&self) -> Needs {
        Needs {
            admits: true,
            memory_guard: true,
            reads: true,
            ends_together: true,
            ignores: &IGNORED,
            knobs: Some(&KNOBS),
            ..Needs::NONE
        }
    }

    fn pause_ns_max(&self) -> u64 {
        PAUSE_NS_MAX
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn charge_bounds(&self, view: &View, device: &mut DeviceMemory) -> ChargeBounds {
        let standing = DeviceView::of(view, device);
        let (done, counts) = (std::mem::take(&mut device.done), view.device());
        let dirty = DirectionWork { runs: counts.runs, bytes: (counts.reclaimable + counts.writeback) * PAGE_BYTES };
        let DeviceView { rates: Rates { prices, .. }, backlog_ns, band, .. } = &standing;
        let most = device.trickle.completed(done, dirty, prices, *backlog_ns, band.end_ns);
        let most = standing.admission_limit_ns(view, device).unwrap_or(most);
        ChargeBounds {
            cost_max: Amount(most),
            prices: standing.rates.page_prices(),
            cause: PauseCause::DeviceTime,
            unasked_max: Amount(standing.unasked_ns()),
            unasked_pages_max: view.guard_pages / 4 * 3,
            wake_above: Amount(standing.background_ns(view, device.check_cold(view))),
        }
    }

    fn flight(&self, view: &View, device: &mut DeviceMemory) -> Flight {
        let rates = device.rates(view);
        let request_bytes = rates.request_bytes(view);
        Flight {
            requests_max: Some(device.requests_max(view) as u32),
            requests: device.requests(view).min(u64::from(u32::MAX)) as u32,
            cost_max: Amount(device.read_interference.times(rates.in_flight_ns)),
            request_bytes,
            run_tail_bytes: request_bytes,
            fills_requests: must_take_whole_runs(view),
            slice_align_bytes: SLICE_ALIGN_BYTES,
            sync_lead: Amount(rates.knobs.budget_ns.saturating_mul(SYNC_TIMES)),
            idle: (!must_take_whole_runs(view)).then(|| idle::terms(&rates, request_bytes)),
            syncs_pass: must_take_whole_runs(view),
        }
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        let LentMemory { payer, device, pace, .. } = memory;
        let mut standing = DeviceView::of(view, device);
        let cost_ns = standing.rates.prices.cost_ns(view.payer.runs, view.payer.dirtied * PAGE_BYTES);
        payer.portion.dirtied(&mut device.portions, view.payer.dirtied, cost_ns);
        let given_ns = device.portions.remaining_ns(view.now.0).saturating_sub(payer.portion.own_ns(&device.portions));
        standing.backlog_ns = standing.backlog_ns.saturating_add(given_ns);
        let payers = device.waiting.sharing_with(view.now.0, &view.payer);
        payer.settle(view.now.0, &standing, payers, device.generation(view));
        let unasked_ns = standing.rates.prices.cost_ns(view.payer.unasked_runs, view.payer.unasked * PAGE_BYTES);
        payer.payer.charge_forgiven(unasked_ns);
        payer.payer.charge(cost_ns);
        (pace.unpaid_pages, pace.unpaid_runs) = (0, 0);
        let DeviceView { band, backlog_ns, .. } = standing;
        let (debt_ns, price) = (snapshot_debt_ns(band, backlog_ns, payers), standing.rates.page_prices());
        pace.payer_pages = (debt_ns / price.page.0).max(1);
        pace.payer_runs = (debt_ns / price.run.0.max(1)).max(1);
        let from_queue = payer.portion.take_queued(&mut device.portions);
        if let Some(pages) = payer.portion.remaining_pages().filter(|_| backlog_ns < band.end_ns) {
            pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
            return Admission::Enter;
        }
        let is_admitted = from_queue && standing.portion_bytes.is_some() && backlog_ns < band.end_ns;
        let verdict = if is_admitted { Verdict::Continue } else { payer.payer.verdict(band, backlog_ns, payers) };
        match verdict {
            Verdict::Continue => payer.take_portion(view, &standing, &mut device.portions, is_admitted, pace),
            Verdict::Queue => payer.queues(),
            Verdict::Pause { ns, of_ns } => {
                payer.pauses(Pausing { ns, of_ns });
                let cause = PauseCause::DeviceTime;
                Admission::Pause(Pause { ns, cause })
            }
        }
    }

    fn completed(&self, view: &View, ends: &[Completed], device: &mut DeviceMemory, (): &mut ()) {
        device.completed(view, ends);
    }

    fn is_over_background(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> bool {
        DeviceView::of(view, device).is_over_background(view, device.check_cold(view))
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut DeviceMemory, (): &mut ()) -> Next {
        let Some(since) = files.dirty_since(true) else { return Next::WaitUntil(Nanos::NEVER) };
        let (standing, is_cold) = (DeviceView::of(view, device), device.check_cold(view));
        let (expires, expire_ns) = (since.after(view.knobs.expire_ns), view.knobs.expire_ns);
        if expires <= view.now {
            // Files half as old go with it, so that the device is not woken for each file.
            return Next::FlushSlice(FlushSlice::Oldest {
                before: Nanos(view.now.0.saturating_sub(expire_ns / 2)),
                hot: true,
            });
        }
        if standing.is_over_background(view, is_cold) {
            let hot = is_cold || standing.is_writing_hot_files();
            if hot || files.dirty_since(false).is_some() {
                return standing.first(view, files, hot);
            }
        }
        if must_take_whole_runs(view) {
            // One small call at a time would be a segment for each file.
            return Next::WaitUntil(expires);
        }
        match idle::next(view, files, &standing.rates.knobs) {
            Next::WaitUntil(at) => Next::WaitUntil(at.min(expires)),
            next => next,
        }
    }

    fn idle_write_rule(&self, view: &View, before: IdleWriteRule, seen: &Rewrites) -> Option<IdleWriteRule> {
        idle::idle_write_rule(view, before, seen)
    }

    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, device: &mut DeviceMemory, (): &mut ()) -> Next {
        DeviceView::of(view, device).first(view, files, true)
    }

    fn slice_bytes(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> u64 {
        let rates = device.rates(view);
        let (least_ns, most_ns) = (rates.in_flight_ns, rates.knobs.budget_ns);
        let runs_ns = rates.alone.run_ns.saturating_mul(SLICE_RUNS);
        let bytes = rates.bytes_in(runs_ns.clamp(least_ns.min(most_ns), most_ns));
        let most = rates.bytes_in(most_ns).max(PAGE_BYTES);
        if most < SLICE_ALIGN_BYTES { most } else { (bytes / SLICE_ALIGN_BYTES).max(1) * SLICE_ALIGN_BYTES }
    }

    fn limits(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> LimitPages {
        let standing = DeviceView::of(view, device);
        LimitPages {
            dirty: standing.limit_pages(view),
            background: standing.background_pages(view, device.check_cold(view)),
            bandwidth: Some(1000 * MILLISECOND / standing.rates.page_prices().page.0),
        }
    }

    fn hang_limits(&self, view: &View, device: &mut DeviceMemory) -> HangLimits {
        device::hang_limits(view, device)
    }

    fn explain(&self, view: &View, device: &mut DeviceMemory) -> Vec<Figure> {
        explain::figures(view, device)
    }

    fn knobs_in_force(&self, view: &View, device: &mut DeviceMemory) -> Vec<KnobInForce> {
        explain::knobs(view, device)
    }

    fn remember(&self, view: &View, device: &mut DeviceMemory) -> Remembered {
        device.remembered(view).map(|prices| prices.named()).unwrap_or_default()
    }

    fn recall(&self, remembered: &Remembered) -> DeviceMemory {
        RememberedPrices::from_named(remembered).map(DeviceMemory::of_known).unwrap_or_default()
    }
}
