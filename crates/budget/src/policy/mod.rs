//! The law in force: what the engine's seam asks, answered in device time.
//!
//! Owns: the view turned into a backlog, the answers. Does not own: the arithmetic (the crate's other modules), any
//! step (the engine).
//! Invariants: a decision looks at its own device and at what the memory guard leaves to it, nothing that devices
//! share. What a payer owes is counted at the prices of the moment of the question.

mod trickle;
mod waiting;

use engine::policy::{
    Admission, Asked, Completed, Cost as Amount, DevicePolicy, Direction, LimitPages, Memory, Needs, Pace, Pause,
    PauseCause, Prices as PagePrices, Room, Then, View, WokenBy,
};
use engine::settings::BackgroundShare;

use self::trickle::Trickle;
use self::waiting::Waiting;
use crate::payer::PAUSE_NS_MAX;
use crate::{
    Band, Completion, Cost, Estimator, MILLISECOND, Payer, Prices, Side, Verdict, guarded_backlog_ns, in_flight_ns,
    snapshot_debt_ns,
};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// H, where nothing else is asked for.
const BUDGET_NS: Cost = 1000 * MILLISECOND;
/// The part of the budget above which the flusher writes.
const BACKGROUND_PART: Cost = 8;

/// The policy.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    budget_ns: Cost,
}

impl Default for Budget {
    fn default() -> Self {
        Self { budget_ns: BUDGET_NS }
    }
}

/// What is remembered of a payer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PayerMemory {
    payer: Payer,
    /// When it was last decided about.
    decided_ns: Option<u64>,
    pausing: Option<Pausing>,
}

#[derive(Clone, Copy, Debug)]
struct Pausing {
    ns: u64,
    of_ns: u64,
}

/// What is remembered of a device.
#[derive(Debug, Default)]
pub struct DeviceMemory {
    estimator: Option<Estimator>,
    waiting: Waiting,
    trickle: Trickle,
    /// Busy time at the end of the last request.
    busy_ns: u64,
    /// Cost of what has completed since room was last asked for.
    done_ns: Cost,
    generation: u64,
    /// The prices of the present generation.
    marked: Option<Prices>,
}

impl DeviceMemory {
    fn estimator(&mut self, view: &View) -> &mut Estimator {
        self.estimator.get_or_insert_with(|| Estimator::new(view.request_depth))
    }

    fn prices(&mut self, budget_ns: Cost, view: &View) -> Prices {
        self.estimator(view).prices(budget_ns, view.request_bytes)
    }

    /// Debts of other prices say nothing once these have moved twofold.
    fn mark(&mut self, prices: Prices) {
        let twofold = |old: u64, new: u64| new > old.saturating_mul(2) || old > new.saturating_mul(2);
        if self.marked.is_none_or(|old| twofold(old.run_ns, prices.run_ns) || twofold(old.mib_ns, prices.mib_ns)) {
            self.generation += 1;
            self.marked = Some(prices);
        }
    }
}

/// A device at one instant.
struct Standing {
    prices: Prices,
    band: Band,
    /// D, the memory guard counted in.
    backlog_ns: Cost,
    /// Of what is dirty and not in flight.
    dirty_ns: Cost,
    /// N.
    payers: u64,
}

impl Budget {
    /// With a budget of so much device time.
    pub fn new(budget_ns: Cost) -> Self {
        Self { budget_ns }
    }

    fn standing(&self, view: &View, device: &mut DeviceMemory) -> Standing {
        let counts = view.device();
        device.waiting.note(view.now.0, counts.payers_waiting);
        let prices = device.prices(self.budget_ns, view);
        let band = Band::stretched(self.budget_ns, prices.run_ns, device.waiting.on_average());
        let pages = counts.reclaimable + counts.writeback;
        let by_time = prices.cost_ns(counts.runs, pages * PAGE_BYTES);
        // The guard leaves the device two thirds of what the others leave; the law's formula in these terms.
        let bytes_max = view.guard_pages.saturating_mul(PAGE_BYTES).saturating_mul(3) / 2;
        let bytes = pages * PAGE_BYTES;
        let backlog_ns = guarded_backlog_ns(band, by_time, bytes, bytes, bytes_max);
        let runs = if counts.reclaimable == 0 { 0 } else { counts.runs };
        let dirty_ns = prices.cost_ns(runs, counts.reclaimable * PAGE_BYTES);
        Standing { prices, band, backlog_ns, dirty_ns, payers: device.waiting.sharing() }
    }

    fn page_prices(prices: Prices) -> PagePrices {
        PagePrices { page: Amount(prices.cost_ns(0, PAGE_BYTES).max(1)), run: Amount(prices.run_ns) }
    }
}

impl PayerMemory {
    /// Brings what the payer owes up to this moment.
    fn settle(&mut self, now_ns: u64, standing: &Standing, generation: u64) {
        let since = now_ns.saturating_sub(self.decided_ns.unwrap_or(now_ns));
        let mut slept = 0;
        if let Some(Pausing { ns, of_ns }) = self.pausing.take() {
            slept = since.min(ns);
            self.payer.slept(slept, of_ns);
        }
        self.payer.repriced(generation);
        let entry = standing.band.entry(standing.backlog_ns);
        self.payer.idled(since - slept, standing.band, entry, standing.payers);
        self.decided_ns = Some(now_ns);
    }
}

impl DevicePolicy for Budget {
    type Payer = PayerMemory;
    type Device = DeviceMemory;
    type Shared = ();

    fn name(&self) -> &'static str {
        "budget"
    }

    fn needs(&self) -> Needs {
        Needs {
            asked: Asked::Before,
            shared_counters: false,
            memory_guard: true,
            reads: true,
            background_share: BackgroundShare::OfLimit,
        }
    }

    fn pause_ns_max(&self) -> u64 {
        PAUSE_NS_MAX
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace { payer_pages: 1, payer_runs: 1, ..Pace::UNASKED }
    }

    fn room(&self, view: &View, device: &mut DeviceMemory) -> Room {
        let standing = self.standing(view, device);
        let done_ns = std::mem::take(&mut device.done_ns);
        let most = device.trickle.completed(done_ns, standing.backlog_ns, standing.band.end_ns);
        let background = if device.estimator(view).is_cold() { 0 } else { self.budget_ns / BACKGROUND_PART };
        Room {
            cost_max: Amount(most),
            prices: Self::page_prices(standing.prices),
            cause: PauseCause::DeviceTime,
            wake_above: Amount(background),
        }
    }

    fn admit(&self, view: &View, memory: Memory<'_, Self>) -> Admission {
        let Memory { payer, device, pace, .. } = memory;
        let standing = self.standing(view, device);
        let Standing { prices, band, backlog_ns, payers, .. } = standing;
        device.mark(prices);
        payer.settle(view.now.0, &standing, device.generation);
        payer.payer.charge(prices.cost_ns(view.payer.runs, view.payer.dirtied * PAGE_BYTES));
        (pace.unpaid_pages, pace.unpaid_runs) = (0, 0);
        let debt_ns = snapshot_debt_ns(band, backlog_ns, payers);
        let price = Self::page_prices(prices);
        pace.payer_pages = (debt_ns / price.page.0).max(1);
        pace.payer_runs = (debt_ns / price.run.0.max(1)).max(1);
        match payer.payer.verdict(band, backlog_ns, payers) {
            Verdict::Continue => Admission::Enter,
            Verdict::Queue => Admission::Wait,
            Verdict::Pause { ns, of_ns } => {
                payer.pausing = Some(Pausing { ns, of_ns });
                Admission::Pause(Pause {
                    ns,
                    cause: PauseCause::DeviceTime,
                    woken_by: WokenBy::Time,
                    then: Then::Decide,
                })
            }
        }
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut DeviceMemory, (): &mut ()) {
        let busy_ns = view.device().busy_ns;
        let took_ns = busy_ns.saturating_sub(device.busy_ns);
        device.busy_ns = busy_ns;
        let side = if done.direction == Direction::Read { Side::Read } else { Side::Write };
        let completion = Completion {
            side,
            runs: done.runs,
            bytes: done.bytes,
            submitted_ns: view.now.0.saturating_sub(done.latency_ns),
            unwatched_ns: 0,
        };
        if side == Side::Write {
            device.done_ns += device.prices(self.budget_ns, view).cost_ns(done.runs, done.bytes);
        }
        device.estimator(view).ended(view.now.0, took_ns, completion);
    }

    fn over_background(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> bool {
        let standing = self.standing(view, device);
        let counts = view.device();
        let half = view.guard_pages / 2;
        counts.reclaimable > 0
            && (standing.dirty_ns > self.budget_ns / BACKGROUND_PART
                || counts.reclaimable > half
                || device.estimator(view).is_cold())
    }

    fn slice_bytes(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> u64 {
        let prices = device.prices(self.budget_ns, view);
        let least = in_flight_ns(self.budget_ns);
        let slice_ns = prices.run_ns.saturating_mul(4).clamp(least, self.budget_ns.max(least));
        let bytes = u128::from(slice_ns) * (1 << 20) / u128::from(prices.mib_ns.max(1));
        bytes.min(u128::from(u64::MAX)) as u64
    }

    fn limits(&self, view: &View, device: &mut DeviceMemory, (): &mut ()) -> LimitPages {
        let standing = self.standing(view, device);
        let page = Self::page_prices(standing.prices).page.0;
        LimitPages {
            dirty: (standing.band.end_ns / page).min(view.guard_pages),
            background: self.budget_ns / BACKGROUND_PART / page,
            bandwidth: Some(1000 * MILLISECOND / page),
        }
    }
}
