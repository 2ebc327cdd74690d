//! The law in force: answers to the engine's seam, in device time.
//!
//! Owns: the view turned into a backlog, the answers. Does not own: the arithmetic (the crate's other modules), any
//! action (the engine).
//! Invariants: a decision looks at its own device and the memory guard's room for it, at nothing that devices share. A
//! payer's debt is counted at the prices of the moment of the question.

mod account;
mod device;
mod explain;
mod hang;
mod idle;
mod in_force;
mod portions;
mod read_interference;
mod trickle;
mod waiting_payers;

use afflux_device::platform::Nanos;
use afflux_device::policy::{
    Admission, Completed, Cost as Amount, DevicePolicy, DirtyFiles, Figure, Flight, HangLimits, IdleWriteRule,
    IgnoredKnob, KnobInForce, LentMemory, LimitPages, Needs, Next, Pace, Pause, PauseCause, Prices as PagePrices,
    Remembered, Rewrites, Room, Turn, View,
};

use self::account::Pausing;
pub use self::account::PayerMemory;
pub use self::device::DeviceMemory;
pub use self::explain::FIGURES;
use self::portions::Portions;
use crate::payer::PAUSE_NS_MAX;
use crate::prices::DirectionWork;
use crate::wide::mul_div;
use crate::{
    Band, Cost, DirectionPrices, KNOBS, Knobs, MIB, MILLISECOND, RememberedPrices, Verdict, guarded_backlog_ns,
    request_bytes, snapshot_debt_ns,
};

/// The name of this policy: what runs if nothing is asked for.
pub const OWN_POLICY: &str = "afflux";

const PAGE_BYTES: u64 = 4096;
/// The part of the budget above which the flusher writes.
const BACKGROUND_PART: Cost = 8;
/// How many times the budget may be stretched for many writers where runs are dear. 100 writers to a USB stick, simulated,
/// get 81 % of its throughput with 5 times and owe 6 s at most; with 8 times, 72 % and 10 s.
const STRETCH_MAX: u64 = 5;
/// How far syncs may be ahead of other writes before the two take turns, in budgets. A sync pays twice for its runs, so
/// that a sync of everything that a device owes goes first, to its end.
const SYNC_TIMES: Cost = 2;
/// A file that has been dirty for so long, or for twice the budget in force, is written before larger ones.
const LONG_DIRTY_NS: u64 = 1000 * MILLISECOND;
/// Fewest bytes of a request where the device has no preference.
const REQUEST_BYTES_MIN: u64 = 128 << 10;
/// A device with requests of this size takes whole runs in one.
const WHOLE_BYTES: u64 = 8 * MIB;
/// Fewest requests that may be in flight where all of them cost little.
const REQUESTS_MIN: u32 = 4;
/// Slices end at multiples of this in a file: flash writes blocks of this size, and file systems align extents to it.
const SLICE_ALIGN_BYTES: u64 = 8 * MIB;
/// The most that a queued payer asks for at once.
const QUEUED_BYTES_MAX: u64 = 256 << 10;
/// Pages of a portion after which its payer is looked at.
const PORTION_PIECE_PAGES: u64 = 256;
/// Beside a page of this cost, the microsecond of a question is nothing.
const DEAR_PAGE_NS: Cost = MILLISECOND;
/// A file is worth staying on for the time of so many runs.
const SLICE_RUNS: Cost = 4;

/// Knobs in pages and requests: this law has device time in their place.
const IGNORED: [IgnoredKnob; 4] = [
    IgnoredKnob { name: "dirty_background_ratio", instead: "dirty_background_bytes or dirty_background_centisecs" },
    IgnoredKnob { name: "writeback_slice_bytes", instead: "budget_ms" },
    IgnoredKnob { name: "writeback_depth", instead: "writeback_in_flight_ms" },
    IgnoredKnob { name: "writeback_request_batch", instead: "writeback_in_flight_ms" },
];

/// The policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget;

/// Costs of work on a device at one instant: enough for some questions.
struct Rates {
    knobs: Knobs,
    /// Prices of writes by themselves.
    alone: DirectionPrices,
    /// Prices of writes beside the readers of the moment: all costs are counted at these.
    prices: DirectionPrices,
    /// Device time that may be in flight, at the prices of writes alone.
    in_flight_ns: Cost,
}

/// A device at one instant.
struct DeviceView {
    rates: Rates,
    band: Band,
    /// D: the cost of all dirty data.
    owed_ns: Cost,
    /// D, with the memory guard.
    backlog_ns: Cost,
    /// N: the payers that share the device.
    payers: u64,
    /// Bytes that a payer dirties at a time, where runs are dear.
    portion_bytes: Option<u64>,
}

/// Whether the device is like an object store: its calls overlap, and small ones share one.
fn must_take_whole_runs(view: &View) -> bool {
    view.request_bytes_max >= WHOLE_BYTES
}

impl Rates {
    fn of(view: &View, device: &mut DeviceMemory) -> Self {
        device.waiting.note(view.now.0, view.device().payers_waiting);
        let knobs = Knobs::of(&view.knobs);
        let alone = device.prices(&knobs, view);
        let (prices, in_flight_ns) = (device.read_interference.applied(alone), device.in_flight_ns(&knobs, view));
        Self { knobs, alone, prices, in_flight_ns }
    }

    fn page_prices(&self) -> PagePrices {
        let page_ns = self.prices.cost_ns(0, PAGE_BYTES).max(1);
        PagePrices { page: Amount(page_ns), run: Amount(self.prices.run_ns) }
    }

    /// Bytes that take `ns`, written alone.
    fn bytes_in(&self, ns: Cost) -> u64 {
        mul_div(ns, MIB, self.alone.mib_ns.max(1))
    }

    fn request_bytes(&self, view: &View) -> u64 {
        let most = view.request_bytes_max.max(PAGE_BYTES);
        if must_take_whole_runs(view) {
            // A large call delays no other.
            return request_bytes(self.knobs.budget_ns / 2, self.alone.mib_ns, MIB, most);
        }
        let preferred = if view.request_bytes < most { view.request_bytes } else { REQUEST_BYTES_MIN.min(most) };
        request_bytes(self.in_flight_ns, self.alone.mib_ns, preferred, most)
    }
}

impl DeviceView {
    fn of(view: &View, device: &mut DeviceMemory) -> Self {
        let (rates, counts) = (Rates::of(view, device), view.device());
        let Rates { knobs, prices, .. } = &rates;
        let (payers, budget_ns) = (device.waiting.on_average(), knobs.budget_ns);
        let stretched = |run_ns| Band::stretched(budget_ns, run_ns, payers).at_most(budget_ns, STRETCH_MAX);
        let terms = portions::terms(knobs, prices, stretched(device.held_run_ns(view)), payers);
        let (band, portion_bytes) = match terms {
            Some((band, bytes)) => (band, Some(bytes)),
            None => (stretched(device.known_run_ns(view)), None),
        };
        let pages = counts.reclaimable + counts.writeback;
        let owed_ns = prices.cost_ns(counts.runs, pages * PAGE_BYTES);
        let backlog_ns = guarded_backlog_ns(band, owed_ns, pages, view.guard_pages);
        Self { rates, band, owed_ns, backlog_ns, payers: device.waiting.sharing(), portion_bytes }
    }

    /// The backlog up to which a queued payer is admitted, if payers have portions and the band is not used up.
    fn admission_limit_ns(&self, view: &View, device: &mut DeviceMemory) -> Option<Cost> {
        let bytes = self.portion_bytes.filter(|_| self.backlog_ns < self.band.end_ns)?;
        let portion_ns = self.rates.prices.cost_ns(1, bytes);
        let lets = device.portions.may_admit_one(view.now.0, self.band, self.backlog_ns, portion_ns);
        let first_ns = self.rates.prices.cost_ns(1, QUEUED_BYTES_MAX);
        Some(if lets { self.backlog_ns.saturating_add(first_ns) } else { 0 })
    }

    /// Up to this cost every payer goes on with its debt forgiven, so nobody has to be asked about. Where payers have portions,
    /// or may soon have them, each is asked.
    fn unasked_ns(&self) -> Cost {
        if self.portion_bytes.is_some() || self.rates.prices.cost_ns(1, PAGE_BYTES) >= DEAR_PAGE_NS {
            return 0;
        }
        self.band.free_ns()
    }

    /// A payer that may go on takes a portion, if there are portions and it does not write little. A payer without room
    /// for a portion queues.
    fn take_portion(
        &self,
        view: &View,
        payer: &mut PayerMemory,
        portions: &mut Portions,
        in_turn: bool,
        pace: &mut Pace,
    ) -> Admission {
        let Some(bytes) = self.portion_bytes.filter(|_| !payer.is_light(self)) else { return Admission::Enter };
        let taken = (&self.rates.prices, bytes, view.payer.wanted_at);
        match payer.share.takes(portions, view.now.0, (self.band, self.backlog_ns), in_turn, taken) {
            Some(pages) => {
                pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
                Admission::Enter
            }
            None => payer.queues(),
        }
    }

    /// The cost of dirty pages not in flight above which the flusher writes: the lower of the knobs in time and in
    /// bytes, or the law's part if neither is set. The threshold never exceeds the cost that writers may dirty without
    /// a pause: they would wait for a flusher that waits for them.
    fn background_ns(&self, view: &View, is_cold: bool) -> Cost {
        let law_ns = match is_cold {
            // Small calls to a store tell nothing about its bandwidth.
            true if must_take_whole_runs(view) => self.rates.prices.cost_ns(0, MIB),
            true => 0,
            false => self.rates.knobs.budget_ns / BACKGROUND_PART,
        };
        let Knobs { background_ns, background_bytes, .. } = self.rates.knobs;
        let in_bytes_ns = background_bytes.map(|bytes| self.rates.prices.cost_ns(0, bytes));
        let asked_ns = background_ns.into_iter().chain(in_bytes_ns).min();
        asked_ns.unwrap_or(law_ns).min(self.band.free_ns())
    }

    /// The same in pages. Half the memory for the device's dirty data is the most.
    fn background_pages(&self, view: &View, is_cold: bool) -> u64 {
        (self.background_ns(view, is_cold) / self.rates.page_prices().page.0).min(view.guard_pages / 2)
    }

    /// Dirty pages above which nobody enters but light writers and a trickle.
    fn limit_pages(&self, view: &View) -> u64 {
        (self.band.end_ns / self.rates.page_prices().page.0).min(view.guard_pages)
    }

    /// Whether enough is dirty and not in flight for the flusher to write.
    fn is_over_background(&self, view: &View, is_cold: bool) -> bool {
        let (counts, dirty_pages) = (view.device(), view.device().reclaimable);
        let runs = counts.runs.saturating_sub(counts.runs_in_flight);
        let dirty_ns = self.rates.prices.cost_ns(runs, dirty_pages * PAGE_BYTES);
        let over = dirty_ns > self.background_ns(view, is_cold);
        dirty_pages > 0 && (over || dirty_pages > view.guard_pages / 2)
    }

    /// The file to write first: the largest, unless one has been dirty for long. With `hot`, hot files too, after all
    /// others or once they have been dirty for long. So the flusher writes a page that is rewritten all the time once
    /// in twice the budget while other files are dirty.
    fn first(&self, view: &View, files: &dyn DirtyFiles, hot: bool) -> Next {
        let long_ns = LONG_DIRTY_NS.max(self.band.end_ns.saturating_mul(2)).min(view.knobs.expire_ns);
        let before = Nanos(view.now.0.saturating_sub(long_ns));
        if files.dirty_since(hot).is_some_and(|since| since <= before) {
            return Next::Turn(Turn::Oldest { before, hot });
        }
        Next::Turn(Turn::Largest { hot: hot && files.dirty_since(false).is_none() })
    }

    /// Whether hot files have to be written: writers pause, or the user has said from when on the flusher writes.
    fn is_writing_hot_files(&self) -> bool {
        self.backlog_ns > self.band.free_ns() || self.rates.knobs.has_background()
    }
}

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

    fn room(&self, view: &View, device: &mut DeviceMemory) -> Room {
        let standing = DeviceView::of(view, device);
        let (done, counts) = (std::mem::take(&mut device.done), view.device());
        let dirty = DirectionWork { runs: counts.runs, bytes: (counts.reclaimable + counts.writeback) * PAGE_BYTES };
        let DeviceView { rates: Rates { prices, .. }, backlog_ns, band, .. } = &standing;
        let most = device.trickle.completed((done, dirty), prices, *backlog_ns, band.end_ns);
        let most = standing.admission_limit_ns(view, device).unwrap_or(most);
        Room {
            cost_max: Amount(most),
            prices: standing.rates.page_prices(),
            cause: PauseCause::DeviceTime,
            unasked_max: Amount(standing.unasked_ns()),
            unasked_pages_max: view.guard_pages / 4 * 3,
            wake_above: Amount(standing.background_ns(view, device.is_cold(view))),
        }
    }

    fn flight(&self, view: &View, device: &mut DeviceMemory) -> Flight {
        let rates = Rates::of(view, device);
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
        payer.share.dirtied(&mut device.portions, view.payer.dirtied, cost_ns);
        let given_ns = device.portions.left_ns(view.now.0).saturating_sub(payer.share.own_ns(&device.portions));
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
        let from_queue = payer.share.does_come_from_queue(&mut device.portions);
        if let Some(pages) = payer.share.left_pages().filter(|_| backlog_ns < band.end_ns) {
            pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
            return Admission::Enter;
        }
        let in_turn = from_queue && standing.portion_bytes.is_some() && backlog_ns < band.end_ns;
        let verdict = if in_turn { Verdict::Continue } else { payer.payer.verdict(band, backlog_ns, payers) };
        match verdict {
            Verdict::Continue => standing.take_portion(view, payer, &mut device.portions, in_turn, pace),
            Verdict::Queue => payer.queues(),
            Verdict::Pause { ns, of_ns } => {
                payer.pauses(Pausing { ns, of_ns });
                let cause = PauseCause::DeviceTime;
                Admission::Pause(Pause { ns, cause })
            }
        }
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut DeviceMemory, (): &mut ()) {
        let rates = Rates::of(view, device);
        device.completed(view, &rates, done);
    }

    fn is_over_background(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> bool {
        DeviceView::of(view, device).is_over_background(view, device.is_cold(view))
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut DeviceMemory, (): &mut ()) -> Next {
        let Some(since) = files.dirty_since(true) else { return Next::WaitUntil(Nanos::NEVER) };
        let (standing, is_cold) = (DeviceView::of(view, device), device.is_cold(view));
        let (expires, expire_ns) = (since.after(view.knobs.expire_ns), view.knobs.expire_ns);
        if expires <= view.now {
            // Files half as old go with it, so that the device is not woken for each file.
            return Next::Turn(Turn::Oldest { before: Nanos(view.now.0.saturating_sub(expire_ns / 2)), hot: true });
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
        let rates = Rates::of(view, device);
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
            background: standing.background_pages(view, device.is_cold(view)),
            bandwidth: Some(1000 * MILLISECOND / standing.rates.page_prices().page.0),
        }
    }

    fn hang_limits(&self, view: &View, device: &mut DeviceMemory) -> HangLimits {
        hang::hang_limits(view, device)
    }

    fn explain(&self, view: &View, device: &mut DeviceMemory) -> Vec<Figure> {
        explain::figures(view, device)
    }

    fn knobs_in_force(&self, view: &View, device: &mut DeviceMemory) -> Vec<KnobInForce> {
        in_force::knobs(view, device)
    }

    fn remember(&self, view: &View, device: &mut DeviceMemory) -> Remembered {
        device.remembered(view).map(|prices| prices.named()).unwrap_or_default()
    }

    fn recall(&self, remembered: &Remembered) -> DeviceMemory {
        RememberedPrices::from_named(remembered).map(DeviceMemory::of_known).unwrap_or_default()
    }
}
