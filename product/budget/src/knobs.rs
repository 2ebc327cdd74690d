//! The knobs of the policy, together with the engine's.
//!
//! Owns: their table; their values in the law's units, with the law's own value where a knob is unset.
//! Does not own: the values (the engine's settings); their use.
//! Invariants: a policy reads the knobs from each view. So a change takes effect at the next decision, for each device
//! by its own values.

use afflux_engine::Nanos;
use afflux_engine::policy::KnobValues;

use crate::{Cost, MILLISECOND, in_flight_ns};

afflux_engine::knobs! {
    /// A knob of the policy.
    BudgetKnob of "budget":

    BudgetMs "budget_ms" 1000 in 200..=60000 "milliseconds" Device AtOnce
        "Time that the device may need to write all that is dirty: what a sync of everything, an NFS COMMIT or somebody who wants to unplug it waits. More takes longer bursts without a pause. Many writers on a device that seeks get more than this, so that their runs stay long: see budget_stretch_max.";
    StretchMax "budget_stretch_max" 5 in 1..=64 "times" Device AtOnce
        "How many times budget_ms may be stretched for many writers on a device where a seek, or a flash block, is dear. 100 writers to a USB stick, simulated, get 81 % of its throughput with 5 times and owe 6 s at most; with 8 times, 72 % and 10 s. Less makes a sync of everything end sooner, and runs shorter where a portion takes more than a quarter of it.";
    PortionBytes "writer_portion_bytes" 8388608 in 1048576..=67108864 or 0 "bytes" Device AtOnce
        "Where many write to a device whose runs are dear, what each writes at a time before it waits for the others: runs get long and little is owed, but each waits long. 100 writers to a disk, simulated, get 90 % of its throughput and owe 1.7 s with 8 MiB, and wait 5 s at a time; evenly about 65 %, 1.8 s and 0.5 s. 0: they write evenly, and the budget is stretched.";
    InFlightMs "writeback_in_flight_ms" 0 in 10..=500 or 0 "milliseconds" Device AtOnce
        "Time that the device may need for write requests in flight: what a sync or a reader that comes new waits behind. 0: a tenth of budget_ms, at most 30.";
    HangErrorMs "hang_error_ms" 0 in 10000..=86400000 or 0 "milliseconds" Device AtOnce
        "A device that has requests and completes nothing for so long refuses its writers and syncs, those who wait and those who come, until it completes something again: they fail with a time-out, over NFS with NFS3ERR_IO (JUKEBOX would have clients try again for ever). Nothing that was written is lost: it stays dirty, and goes to the device once that goes on. 0: they wait as long as it takes. Less than 10 s is no hang: disks spin up.";
    IdleWriteback "idle_writeback" 1 in 0..=1 "0 or 1" Device AtOnce
        "1: a file that has been left alone for a while, 200 ms at first, is written while the device would idle. 0: only what is too much, or too old, is written, as suits a disk that should spin down.";
}

/// The knobs of one device, in the law's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knobs {
    /// H: the budget.
    pub budget_ns: Cost,
    /// L: device time that may be in flight.
    pub in_flight_ns: Cost,
    /// The most times that the budget may be stretched.
    pub stretch_max: u64,
    /// Bytes that a payer dirties at a time where runs are dear; 0: all enter evenly.
    pub portion_bytes: u64,
    /// The background line of `dirty_background_centisecs`; `None` leaves the line to the law.
    pub background_ns: Option<Cost>,
    /// Age at which data is written; [`u64::MAX`] is never.
    pub expire_ns: u64,
    /// Whether files left alone are written while the device would idle. Off if `dirty_background_centisecs` sets the
    /// background line, or if data does not expire.
    pub idle: bool,
}

impl Knobs {
    /// The knobs in the view that a decision is made from.
    pub fn of(values: &KnobValues) -> Self {
        let set_ns = |value: u64, unit_ns: u64| (value > 0).then_some(value * unit_ns);
        let own_ns = |knob| set_ns(values.own.get(knob), MILLISECOND);
        let budget_ns = values.own.get(BudgetKnob::BudgetMs) * MILLISECOND;
        Self {
            budget_ns,
            in_flight_ns: own_ns(BudgetKnob::InFlightMs).unwrap_or_else(|| in_flight_ns(budget_ns)),
            stretch_max: values.own.get(BudgetKnob::StretchMax),
            portion_bytes: values.own.get(BudgetKnob::PortionBytes),
            background_ns: set_ns(values.background_centisecs, Nanos::CENTISECOND),
            expire_ns: values.expire_ns,
            idle: values.own.get(BudgetKnob::IdleWriteback) > 0
                && values.background_centisecs == 0
                && values.expire_ns < u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
