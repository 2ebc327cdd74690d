//! The figures in force for a device and their reasons, to be shown.
//!
//! Owns: the table of figures, the law's term for each, the reason for the budget in force.
//! Does not own: the terms (`policy`), how they are shown.
//! Invariants: every row of the table has a value each time, in the table's order.

use afflux_device::policy::{Figure, FigureInfo, FigureValue, View};

use super::device::DeviceMemory;
use super::device_view::DeviceView;
use super::hang::hang_limits;
use crate::{EstimatorSnapshot, KnownPrices};

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
