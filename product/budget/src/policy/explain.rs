//! What is shown of a device: the figures in force with their reasons, and the knobs that act with other values than
//! they were given.
//!
//! Owns: the table of figures, the law's term for each, the reason for the budget in force; the comparison of each knob
//! with the law's term that it sets, the reason for a difference.
//! Does not own: the terms (`policy`), knobs that the engine reads by itself, how all this is shown.
//! Invariants: every row of the table has a value each time, in the table's order. The terms are those that decisions
//! are made from.

use afflux_device::platform::Nanos;
use afflux_device::policy::{Figure, FigureInfo, FigureValue, KnobInForce, View};

use crate::knobs::BudgetKnob;
use crate::policy::device::{DeviceMemory, hang_limits};
use crate::policy::device_view::DeviceView;
use crate::policy::rates::must_take_whole_runs;
use crate::prices::PAGE_BYTES;
use crate::{Cost, EstimatorSnapshot, KnownPrices, MILLISECOND};

macro_rules! figures {
    ($($name:ident $unit:literal $doc:literal;)*) => {
        /// The figures of a device, in this order.
        pub const FIGURES: [FigureInfo; [$(stringify!($name)),*].len()] =
            [$(FigureInfo { name: stringify!($name), unit: $unit, doc: $doc }),*];

        struct Values {
            $($name: FigureValue,)*
        }

        impl Values {
            fn figures(self) -> Vec<Figure> {
                let values = [$(self.$name),*];
                FIGURES.iter().zip(values).map(|(info, value)| Figure { info, value }).collect()
            }
        }
    };
}

figures! {
    budget_ns "ns" "The budget that was asked for (`budget_ms`).";
    budget_in_force_ns "ns" "The budget in force: at so much nobody enters but light writers and a trickle.";
    budget_because "" "The reason for the budget in force: `asked for`; `many writers`, whose runs together need more; `memory guard`, whose limit in bytes is used up before the device's time.";
    unpaused_ns "ns" "Up to here nobody waits: three quarters of the budget in force.";
    owed_ns "ns" "The device's debt: its time for all dirty bytes, those in flight included, at the prices in force.";
    counted_ns "ns" "The same with the memory guard counted in. It decides about pauses.";
    payers "payers" "Number of waiting writers among whom the device is divided now.";
    payers_on_average "payers" "How many writers waited over the last second. They stretch the budget.";
    knowledge "" "`known`; or `cold`, while too little has completed for the learned prices to be used as they are.";
    run_ns "ns" "The price of a written run now, for readers beside it as many times more as writes take longer.";
    mib_ns "ns/MiB" "The price of a written MiB now.";
    write_run_ns "ns" "Learned: a run that is written.";
    write_mib_ns "ns/MiB" "Learned: a MiB that is written.";
    write_age_ns "ns" "For how long writes have taught nothing; null if they never have since the start.";
    read_run_ns "ns" "Learned: a run that is read.";
    read_mib_ns "ns/MiB" "Learned: a MiB that is read.";
    read_age_ns "ns" "For how long reads have taught nothing; null if they never have since the start.";
    in_flight_max_ns "ns" "The price that the writes in flight may have together.";
    parallel_requests "requests" "How many writes may be on the way whatever they cost: learned.";
    portion_bytes "bytes" "Bytes that a writer dirties at a time; null while all write evenly.";
    idle_writes "" "Whether files left alone are written while the device would idle: `on` or `off`.";
    expires_after_ns "ns" "Age at which data is written; null if age causes no write.";
    refuses_after_ns "ns" "Time without a completion after which writers are refused; null if they wait for ever.";
    unloaded_latency_ns "ns" "The time of a write that meets no other. Null while that is not known.";
}

/// The reason for the budget in force.
fn because(standing: &DeviceView) -> &'static str {
    if standing.backlog_ns > standing.owed_ns {
        "memory guard"
    } else if standing.band.end_ns > standing.rates.knobs.budget_ns {
        "many writers"
    } else {
        "asked for"
    }
}

/// A time that may be without end.
fn finite(ns: u64) -> Option<u64> {
    (ns < u64::MAX).then_some(ns)
}

pub(super) fn figures(view: &View, device: &mut DeviceMemory) -> Vec<Figure> {
    let standing = DeviceView::of(view, device);
    let (EstimatorSnapshot { reads, writes, is_cold, .. }, parallelism) = device.known(view);
    let KnownPrices { prices: write, age_ns: write_age_ns, .. } = writes;
    let KnownPrices { prices: read, age_ns: read_age_ns, .. } = reads;
    let values = Values {
        budget_ns: standing.rates.knobs.budget_ns.into(),
        budget_in_force_ns: standing.band.end_ns.into(),
        budget_because: because(&standing).into(),
        unpaused_ns: standing.band.free_ns().into(),
        owed_ns: standing.owed_ns.into(),
        counted_ns: standing.backlog_ns.into(),
        payers: standing.payers.into(),
        payers_on_average: device.waiting.on_average().into(),
        knowledge: if is_cold { "cold" } else { "known" }.into(),
        run_ns: standing.rates.prices.run_ns.into(),
        mib_ns: standing.rates.prices.mib_ns.into(),
        write_run_ns: write.run_ns.into(),
        write_mib_ns: write.mib_ns.into(),
        write_age_ns: write_age_ns.into(),
        read_run_ns: read.run_ns.into(),
        read_mib_ns: read.mib_ns.into(),
        read_age_ns: read_age_ns.into(),
        in_flight_max_ns: standing.rates.in_flight_ns.into(),
        parallel_requests: parallelism.learned().into(),
        portion_bytes: standing.portion_bytes.into(),
        idle_writes: if standing.rates.knobs.idle { "on" } else { "off" }.into(),
        expires_after_ns: finite(view.knobs.expire_ns).into(),
        refuses_after_ns: finite(hang_limits(view, device).refused_ns).into(),
        unloaded_latency_ns: parallelism.unloaded_ns().into(),
    };
    values.figures()
}

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
