//! A device at one instant: its backlog, its band, the flusher's threshold.
//!
//! Owns: the view turned into a backlog, the terms that depend on it.
//! Does not own: prices (`rates`), the device's memory (`device`), the answers to the engine (the policy).
//! Invariants: all terms of a view are counted at the same prices.

use afflux_device::platform::Nanos;
use afflux_device::policy::{DirtyFiles, FlushSlice, Next, View};

use super::device::DeviceMemory;
use super::portions;
use super::rates::{Rates, must_take_whole_runs};
use crate::prices::PAGE_BYTES;
use crate::{Band, Cost, Knobs, MIB, MILLISECOND, guarded_backlog_ns};

/// The part of the budget above which the flusher writes.
const BACKGROUND_PART: Cost = 8;
/// How many times the budget may be stretched for many writers where runs are dear. 100 writers to a USB stick,
/// simulated, get 81 % of its throughput with 5 times and owe 6 s at most; with 8 times, 72 % and 10 s.
const STRETCH_MAX: u64 = 5;
/// A file that has been dirty for so long, or for twice the budget in force, is written before larger ones.
const LONG_DIRTY_NS: u64 = 1000 * MILLISECOND;
/// The most that a queued payer asks for at once.
const QUEUED_BYTES_MAX: u64 = 256 << 10;
/// Beside a page of this cost, the microsecond of a question is nothing.
const DEAR_PAGE_NS: Cost = MILLISECOND;

/// A device at one instant.
pub(super) struct DeviceView {
    pub(super) rates: Rates,
    pub(super) band: Band,
    /// D: the cost of all dirty data.
    pub(super) owed_ns: Cost,
    /// D, with the memory guard.
    pub(super) backlog_ns: Cost,
    /// N: the payers that share the device.
    pub(super) payers: u64,
    /// Bytes that a payer dirties at a time, where runs are dear.
    pub(super) portion_bytes: Option<u64>,
}

impl DeviceView {
    pub(super) fn of(view: &View, device: &mut DeviceMemory) -> Self {
        let (rates, counts) = (device.rates(view), view.device());
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
    pub(super) fn admission_limit_ns(&self, view: &View, device: &mut DeviceMemory) -> Option<Cost> {
        let bytes = self.portion_bytes.filter(|_| self.backlog_ns < self.band.end_ns)?;
        let portion_ns = self.rates.prices.cost_ns(1, bytes);
        let lets = device.portions.try_admit_one(view.now.0, self.band, self.backlog_ns, portion_ns);
        let first_ns = self.rates.prices.cost_ns(1, QUEUED_BYTES_MAX);
        Some(if lets { self.backlog_ns.saturating_add(first_ns) } else { 0 })
    }

    /// Up to this cost every payer goes on with its debt forgiven, so nobody has to be asked about. Where payers have
    /// portions, or may soon have them, each is asked.
    pub(super) fn unasked_ns(&self) -> Cost {
        if self.portion_bytes.is_some() || self.rates.prices.cost_ns(1, PAGE_BYTES) >= DEAR_PAGE_NS {
            return 0;
        }
        self.band.free_ns()
    }

    /// The cost of dirty pages not in flight above which the flusher writes: the lower of the knobs in time and in
    /// bytes, or the law's part if neither is set. The threshold never exceeds the cost that writers may dirty without
    /// a pause: they would wait for a flusher that waits for them.
    pub(super) fn background_ns(&self, view: &View, is_cold: bool) -> Cost {
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
    pub(super) fn background_pages(&self, view: &View, is_cold: bool) -> u64 {
        (self.background_ns(view, is_cold) / self.rates.page_prices().page.0).min(view.guard_pages / 2)
    }

    /// Dirty pages above which nobody enters but light writers and a trickle.
    pub(super) fn limit_pages(&self, view: &View) -> u64 {
        (self.band.end_ns / self.rates.page_prices().page.0).min(view.guard_pages)
    }

    /// Whether enough is dirty and not in flight for the flusher to write.
    pub(super) fn is_over_background(&self, view: &View, is_cold: bool) -> bool {
        let (counts, dirty_pages) = (view.device(), view.device().reclaimable);
        let runs = counts.runs.saturating_sub(counts.runs_in_flight);
        let dirty_ns = self.rates.prices.cost_ns(runs, dirty_pages * PAGE_BYTES);
        let over = dirty_ns > self.background_ns(view, is_cold);
        dirty_pages > 0 && (over || dirty_pages > view.guard_pages / 2)
    }

    /// The file to write first: the largest, unless one has been dirty for long. With `hot`, hot files too, after all
    /// others or once they have been dirty for long. So the flusher writes a page that is rewritten all the time once
    /// in twice the budget while other files are dirty.
    pub(super) fn first(&self, view: &View, files: &dyn DirtyFiles, hot: bool) -> Next {
        let long_ns = LONG_DIRTY_NS.max(self.band.end_ns.saturating_mul(2)).min(view.knobs.expire_ns);
        let before = Nanos(view.now.0.saturating_sub(long_ns));
        if files.dirty_since(hot).is_some_and(|since| since <= before) {
            return Next::FlushSlice(FlushSlice::Oldest { before, hot });
        }
        Next::FlushSlice(FlushSlice::Largest { hot: hot && files.dirty_since(false).is_none() })
    }

    /// Whether hot files have to be written: writers pause, or the user has said from when on the flusher writes.
    pub(super) fn is_writing_hot_files(&self) -> bool {
        self.backlog_ns > self.band.free_ns() || self.rates.knobs.has_background()
    }
}
