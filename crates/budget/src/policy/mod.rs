//! The law in force: what the engine's seam asks, answered in device time.
//!
//! Owns: the view turned into a backlog, the answers. Does not own: the arithmetic (the crate's other modules), any
//! step (the engine).
//! Invariants: a decision looks at its own device and at what the memory guard leaves to it, nothing that devices
//! share. What a payer owes is counted at the prices of the moment of the question.

mod account;
mod beside;
mod device;
mod portions;
mod trickle;
mod waiting;

use engine::Nanos;
use engine::policy::{
    Admission, Asked, Completed, Cost as Amount, DevicePolicy, DirtyFiles, Flight, LimitPages, Memory, Needs, Next,
    Pace, Pause, PauseCause, Prices as PagePrices, Room, Then, View, WokenBy,
};
use engine::settings::BackgroundShare;

use self::account::Pausing;
pub use self::account::PayerMemory;
pub use self::device::DeviceMemory;
use crate::payer::PAUSE_NS_MAX;
use crate::{
    Band, Cost, KNOBS, Knobs, MIB, MILLISECOND, Prices, Verdict, guarded_backlog_ns, request_bytes, snapshot_debt_ns,
};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// The part of the budget above which the flusher writes.
const BACKGROUND_PART: Cost = 8;
/// The part of the budget that syncs may use more than the rest before the two take turns.
const SYNC_PART: Cost = 4;
/// A file that has been dirty for so long, or for twice the budget in force, is written before larger ones.
const LONG_DIRTY_NS: u64 = 1000 * MILLISECOND;
/// Fewest bytes of a request where the device has no preference.
const REQUEST_BYTES_MIN: u64 = 128 << 10;
/// Fewest requests that may be in flight where all of them cost little.
const REQUESTS_MIN: u32 = 4;
/// Slices end at multiples of this in their file: flash writes blocks of so much, and file systems give out extents
/// that are aligned to as much.
const SLICE_ALIGN_BYTES: u64 = 8 * MIB;
/// The most that one in the queue asks for at once.
const QUEUED_BYTES_MAX: u64 = 256 << 10;
/// Pages of a portion after which its payer is looked at.
const PORTION_PIECE_PAGES: u64 = 256;
/// So many runs' time is worth staying on a file for.
const SLICE_RUNS: Cost = 4;

/// The policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget;

/// A device at one instant.
struct Standing {
    knobs: Knobs,
    /// Of writes by themselves.
    alone: Prices,
    /// Of writes beside the readers of the moment: what everything is counted at.
    prices: Prices,
    /// What may be in flight, by writes alone.
    in_flight_ns: Cost,
    band: Band,
    /// D, the memory guard counted in.
    backlog_ns: Cost,
    /// Of what is dirty and not in flight.
    dirty_ns: Cost,
    /// N.
    payers: u64,
    /// What a payer dirties at a time, where runs are dear.
    portion_bytes: Option<u64>,
}

impl Standing {
    fn of(view: &View, device: &mut DeviceMemory) -> Self {
        let (counts, knobs) = (view.device(), Knobs::of(&view.knobs));
        device.waiting.note(view.now.0, counts.payers_waiting);
        let alone = device.prices(&knobs, view);
        let (prices, in_flight_ns) = (device.beside.applied(alone), device.in_flight_ns(&knobs, view));
        let (payers, budget_ns) = (device.waiting.on_average(), knobs.budget_ns);
        let stretched = |run_ns| Band::stretched(budget_ns, run_ns, payers).at_most(budget_ns, knobs.stretch_max);
        let terms = portions::terms(&knobs, &prices, stretched(device.held_run_ns(view)), payers);
        let (band, portion_bytes) = match terms {
            Some((band, bytes)) => (band, Some(bytes)),
            None => (stretched(device.known_run_ns(view)), None),
        };
        let bytes = (counts.reclaimable + counts.writeback) * PAGE_BYTES;
        let by_time = prices.cost_ns(counts.runs, bytes);
        // The guard leaves the device two thirds of what the others leave: the law's formula in these terms.
        let bytes_max = view.guard_pages.saturating_mul(PAGE_BYTES).saturating_mul(3) / 2;
        let backlog_ns = guarded_backlog_ns(band, by_time, bytes, bytes, bytes_max);
        let runs = counts.runs.saturating_sub(counts.runs_in_flight);
        let dirty_ns = prices.cost_ns(runs, counts.reclaimable * PAGE_BYTES);
        let payers = device.waiting.sharing();
        Self { knobs, alone, prices, in_flight_ns, band, backlog_ns, dirty_ns, payers, portion_bytes }
    }

    /// Up to where one who waits in the queue is let in, where payers have portions and the band is not used up.
    fn lets_in(&self, view: &View, device: &mut DeviceMemory) -> Option<Cost> {
        let bytes = self.portion_bytes.filter(|_| self.backlog_ns < self.band.end_ns)?;
        let portion_ns = self.prices.cost_ns(1, bytes);
        let lets = device.portions.lets_one_in(view.now.0, self.band, self.backlog_ns, portion_ns);
        let first_ns = self.prices.cost_ns(1, QUEUED_BYTES_MAX);
        Some(if lets { self.backlog_ns.saturating_add(first_ns) } else { 0 })
    }

    /// What may be dirty and not in flight before the flusher writes: by the knob in time, or the law's part; less by
    /// the knob in bytes.
    fn background_ns(&self, view: &View, is_cold: bool) -> Cost {
        let law_ns = if is_cold { 0 } else { self.knobs.budget_ns / BACKGROUND_PART };
        let in_time_ns = self.knobs.background_ns.unwrap_or(law_ns);
        match view.knobs.device_background_bytes {
            0 => in_time_ns,
            bytes => in_time_ns.min(self.prices.cost_ns(0, bytes)),
        }
    }

    fn page_prices(&self) -> PagePrices {
        let page_ns = self.prices.cost_ns(0, PAGE_BYTES).max(1);
        PagePrices { page: Amount(page_ns), run: Amount(self.prices.run_ns) }
    }

    /// Bytes that take so long by themselves.
    fn bytes_in(&self, ns: Cost) -> u64 {
        let bytes = u128::from(ns) * u128::from(MIB) / u128::from(self.alone.mib_ns.max(1));
        bytes.min(u128::from(u64::MAX)) as u64
    }

    fn request_bytes(&self, view: &View) -> u64 {
        let most = view.request_bytes_max.max(PAGE_BYTES);
        let preferred = if view.request_bytes < most { view.request_bytes } else { REQUEST_BYTES_MIN.min(most) };
        request_bytes(self.in_flight_ns, self.alone.mib_ns, preferred, most)
    }

    /// The file to write first: the largest, unless one has been dirty for long.
    fn first(&self, view: &View, files: &dyn DirtyFiles) -> Next {
        let long_ns = LONG_DIRTY_NS.max(self.band.end_ns.saturating_mul(2)).min(view.knobs.expire_ns);
        let before = Nanos(view.now.0.saturating_sub(long_ns));
        if files.dirty_since().is_some_and(|since| since <= before) { Next::Oldest { before } } else { Next::MostDirty }
    }
}

impl DevicePolicy for Budget {
    type Payer = PayerMemory;
    type Device = DeviceMemory;
    type Shared = ();

    fn name(&self) -> &'static str {
        "afflux"
    }

    fn needs(&self) -> Needs {
        Needs {
            asked: Asked::Before,
            shared_counters: false,
            memory_guard: true,
            reads: true,
            background_share: BackgroundShare::OfLimit,
            knobs: Some(&KNOBS),
        }
    }

    fn pause_ns_max(&self) -> u64 {
        PAUSE_NS_MAX
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn room(&self, view: &View, device: &mut DeviceMemory) -> Room {
        let standing = Standing::of(view, device);
        let done_ns = std::mem::take(&mut device.done_ns);
        let most = device.trickle.completed(done_ns, standing.backlog_ns, standing.band.end_ns);
        let most = standing.lets_in(view, device).unwrap_or(most);
        Room {
            cost_max: Amount(most),
            prices: standing.page_prices(),
            cause: PauseCause::DeviceTime,
            wake_above: Amount(standing.background_ns(view, device.is_cold(view))),
        }
    }

    fn flight(&self, view: &View, device: &mut DeviceMemory) -> Flight {
        let standing = Standing::of(view, device);
        let request_bytes = standing.request_bytes(view);
        Flight {
            requests_max: Some(view.request_depth.max(REQUESTS_MIN)),
            requests: device.requests(view).min(u64::from(u32::MAX)) as u32,
            cost_max: Amount(device.beside.times(standing.in_flight_ns)),
            request_bytes,
            run_tail_bytes: request_bytes,
            slice_align_bytes: SLICE_ALIGN_BYTES,
            sync_lead: Amount(standing.knobs.budget_ns / SYNC_PART),
        }
    }

    fn admit(&self, view: &View, memory: Memory<'_, Self>) -> Admission {
        let Memory { payer, device, pace, .. } = memory;
        let mut standing = Standing::of(view, device);
        let cost_ns = standing.prices.cost_ns(view.payer.runs, view.payer.dirtied * PAGE_BYTES);
        payer.share.dirtied(&mut device.portions, view.payer.dirtied, cost_ns);
        let given_ns = device.portions.left_ns(view.now.0).saturating_sub(payer.share.own_ns(&device.portions));
        standing.backlog_ns = standing.backlog_ns.saturating_add(given_ns);
        payer.settle(view.now.0, &standing, device.generation(view));
        payer.payer.charge(cost_ns);
        (pace.unpaid_pages, pace.unpaid_runs) = (0, 0);
        let Standing { band, backlog_ns, payers, .. } = standing;
        let (debt_ns, price) = (snapshot_debt_ns(band, backlog_ns, payers), standing.page_prices());
        pace.payer_pages = (debt_ns / price.page.0).max(1);
        pace.payer_runs = (debt_ns / price.run.0.max(1)).max(1);
        let from_queue = payer.share.comes_from_queue(&mut device.portions);
        if let Some(pages) = payer.share.left_pages().filter(|_| backlog_ns < band.end_ns) {
            pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
            return Admission::Enter;
        }
        let in_turn = from_queue && standing.portion_bytes.is_some() && backlog_ns < band.end_ns;
        let verdict = if in_turn { Verdict::Continue } else { payer.payer.verdict(band, backlog_ns, payers) };
        match verdict {
            Verdict::Continue => {
                let Some(bytes) = standing.portion_bytes.filter(|_| !payer.is_light(&standing)) else {
                    return Admission::Enter;
                };
                let taken = (&standing.prices, bytes, view.payer.wanted_at);
                let Some(pages) =
                    payer.share.takes(&mut device.portions, view.now.0, (band, backlog_ns), in_turn, taken)
                else {
                    payer.share.queues();
                    return Admission::Wait;
                };
                pace.payer_pages = pages.min(PORTION_PIECE_PAGES);
                Admission::Enter
            }
            Verdict::Queue => {
                payer.share.queues();
                Admission::Wait
            }
            Verdict::Pause { ns, of_ns } => {
                payer.pauses(Pausing { ns, of_ns });
                let cause = PauseCause::DeviceTime;
                Admission::Pause(Pause { ns, cause, woken_by: WokenBy::Time, then: Then::Decide })
            }
        }
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut DeviceMemory, (): &mut ()) {
        let standing = Standing::of(view, device);
        device.completed(view, &standing.knobs, done, standing.request_bytes(view));
    }

    fn over_background(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> bool {
        let (standing, dirty_pages) = (Standing::of(view, device), view.device().reclaimable);
        let over = standing.dirty_ns > standing.background_ns(view, device.is_cold(view));
        dirty_pages > 0 && (over || dirty_pages > view.guard_pages / 2)
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut DeviceMemory, (): &mut ()) -> Next {
        if files.any() && self.over_background(view, device, &mut ()) {
            return Standing::of(view, device).first(view, files);
        }
        let Some(since) = files.dirty_since() else { return Next::WaitUntil(Nanos::NEVER) };
        let (expires, expire_ns) = (since.after(view.knobs.expire_ns), view.knobs.expire_ns);
        if expires <= view.now {
            // With it goes what is half as old, so that the device is not woken for each file.
            Next::Oldest { before: Nanos(view.now.0.saturating_sub(expire_ns / 2)) }
        } else {
            Next::WaitUntil(expires)
        }
    }

    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, device: &mut DeviceMemory, (): &mut ()) -> Next {
        Standing::of(view, device).first(view, files)
    }

    fn slice_bytes(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> u64 {
        let standing = Standing::of(view, device);
        let (least_ns, most_ns) = (standing.in_flight_ns, standing.knobs.budget_ns);
        let runs_ns = standing.alone.run_ns.saturating_mul(SLICE_RUNS);
        let bytes = standing.bytes_in(runs_ns.clamp(least_ns.min(most_ns), most_ns));
        let most = standing.bytes_in(most_ns).max(PAGE_BYTES);
        if most < SLICE_ALIGN_BYTES { most } else { (bytes / SLICE_ALIGN_BYTES).max(1) * SLICE_ALIGN_BYTES }
    }

    fn limits(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> LimitPages {
        let standing = Standing::of(view, device);
        let page_ns = standing.page_prices().page.0;
        LimitPages {
            dirty: (standing.band.end_ns / page_ns).min(view.guard_pages),
            background: standing.background_ns(view, device.is_cold(view)) / page_ns,
            bandwidth: Some(1000 * MILLISECOND / page_ns),
        }
    }
}
