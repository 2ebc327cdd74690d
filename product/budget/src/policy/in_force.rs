//! Knobs that act on a device with other values than they were given.
//!
//! Owns: the comparison of each knob with the law's term that it sets, the reason for a difference.
//! Does not own: the terms (`policy`), knobs that the engine reads by itself, how they are shown.
//! Invariants: the terms are those that decisions are made from.

use afflux_device::platform::Nanos;
use afflux_device::policy::{KnobInForce, View};

use super::device::DeviceMemory;
use super::device_view::DeviceView;
use super::rates::{PAGE_BYTES, must_take_whole_runs};
use crate::knobs::BudgetKnob;
use crate::{Cost, MILLISECOND};

/// All knobs of the device that differ.
pub(super) fn knobs(view: &View, device: &mut DeviceMemory) -> Vec<KnobInForce> {
    let standing = DeviceView::of(view, device);
    let is_cold = device.check_cold(view);
    [
        dirty_limit(&standing, view),
        background_bytes(&standing, view, is_cold),
        background_time(&standing, view, is_cold),
        budget(&standing, view),
        portion(&standing, view),
        in_flight(&standing, view),
        idle_writes(view),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn differs(name: &'static str, value: u64, unit: &'static str, because: &str) -> Option<KnobInForce> {
    Some(KnobInForce { name, value: Some(value), unit, because: because.to_owned() })
}

fn ineffective(name: &'static str, because: &str) -> Option<KnobInForce> {
    Some(KnobInForce { name, value: None, unit: "", because: because.to_owned() })
}

fn in_ms(ns: Cost) -> u64 {
    ns.div_ceil(MILLISECOND)
}

/// The cost of as many pages as the memory guard leaves to the device.
fn guard_ns(standing: &DeviceView, pages: u64) -> Cost {
    standing.rates.prices.cost_ns(0, pages.saturating_mul(PAGE_BYTES))
}

/// The two knobs of the dirty limit give the memory for dirty data. The device's time is a limit beside it.
fn dirty_limit(standing: &DeviceView, view: &View) -> Option<KnobInForce> {
    let asked_bytes = view.knobs.dirty_bytes;
    let bytes = standing.limit_pages(view) * PAGE_BYTES;
    let name = if asked_bytes > 0 { "dirty_bytes" } else { "dirty_ratio" };
    if guard_ns(standing, view.guard_pages) > standing.band.end_ns {
        return differs(name, bytes, "bytes", "the device needs its budget (budget_ms) to write so many");
    }
    let because = "memory is the limit: halfway between this knob and the whole cache, less what other devices hold";
    (bytes != asked_bytes).then(|| differs(name, bytes, "bytes", because)).flatten()
}

/// Why a threshold of the flusher is lower than the one that was asked for.
fn background_because(standing: &DeviceView, view: &View, is_cold: bool) -> &'static str {
    let pages = standing.background_ns(view, is_cold) / standing.rates.page_prices().page.0;
    if view.guard_pages / 2 < pages {
        "half the memory for the device's dirty data"
    } else if standing.background_ns(view, is_cold) >= standing.band.free_ns() {
        "writers pause above three quarters of the budget (budget_ms), and would wait for the flusher"
    } else {
        "the other background threshold is lower"
    }
}

fn background_bytes(standing: &DeviceView, view: &View, is_cold: bool) -> Option<KnobInForce> {
    let asked_bytes = view.knobs.device_background_bytes;
    let bytes = standing.background_pages(view, is_cold) * PAGE_BYTES;
    // The threshold is counted in whole pages.
    let is_lower = asked_bytes > 0 && bytes + PAGE_BYTES < asked_bytes;
    let because = || background_because(standing, view, is_cold);
    is_lower.then(|| differs("dirty_background_bytes", bytes, "bytes", because())).flatten()
}

fn background_time(standing: &DeviceView, view: &View, is_cold: bool) -> Option<KnobInForce> {
    let asked_ns = view.knobs.background_centisecs.saturating_mul(Nanos::CENTISECOND);
    let ns = standing.background_ns(view, is_cold).min(guard_ns(standing, view.guard_pages / 2));
    let because = || background_because(standing, view, is_cold);
    (ns < asked_ns)
        .then(|| differs("dirty_background_centisecs", ns / Nanos::CENTISECOND, "centiseconds", because()))
        .flatten()
}

fn budget(standing: &DeviceView, view: &View) -> Option<KnobInForce> {
    let guard_ns = guard_ns(standing, view.guard_pages);
    if guard_ns < standing.band.end_ns {
        return differs("budget_ms", in_ms(guard_ns), "milliseconds", "memory for dirty data runs short before it");
    }
    (standing.band.end_ns != standing.rates.knobs.budget_ns)
        .then(|| differs("budget_ms", in_ms(standing.band.end_ns), "milliseconds", "so many write that runs need more"))
        .flatten()
}

fn portion(standing: &DeviceView, view: &View) -> Option<KnobInForce> {
    let (name, asked_bytes) = ("writer_portion_bytes", view.knobs.own.get(BudgetKnob::PortionBytes));
    match standing.portion_bytes {
        _ if asked_bytes == 0 => None,
        None => ineffective(name, "no writers wait whose runs need more than the budget"),
        Some(bytes) if bytes < asked_bytes => {
            differs(name, bytes, "bytes", "the budget in force holds several of these")
        }
        Some(_) => None,
    }
}

fn in_flight(standing: &DeviceView, view: &View) -> Option<KnobInForce> {
    let asked_ms = view.knobs.own.get(BudgetKnob::InFlightMs);
    let ms = in_ms(standing.rates.in_flight_ns);
    (asked_ms > 0 && ms != asked_ms)
        .then(|| differs("writeback_in_flight_ms", ms, "milliseconds", "one call to the device takes so long"))
        .flatten()
}

fn idle_writes(view: &View) -> Option<KnobInForce> {
    let name = "idle_writeback";
    if view.knobs.own.get(BudgetKnob::IdleWriteback) == 0 {
        None
    } else if view.knobs.background_centisecs > 0 {
        ineffective(name, "dirty_background_centisecs says from when on the flusher writes")
    } else if view.knobs.device_background_bytes > 0 {
        ineffective(name, "dirty_background_bytes says from when on the flusher writes")
    } else if view.knobs.expire_ns == u64::MAX {
        ineffective(name, "dirty_writeback_centisecs=0 turns writes without a threshold off")
    } else if must_take_whole_runs(view) {
        ineffective(name, "the device takes large requests alone, as object stores do")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
