//! The knobs of the policy, together with the engine's.
//!
//! Owns: their table; their values in the law's units, with the law's own value where a knob is unset.
//! Does not own: the values (the engine's settings); their use.
//! Invariants: a policy reads the knobs from each view. So a change takes effect at the next decision, for each device
//! by its own values.

use afflux_device::platform::Nanos;
use afflux_device::policy::KnobValues;

use crate::{Cost, MILLISECOND, in_flight_ns};

afflux_device::knobs! {
    /// A knob of the policy.
    BudgetKnob of policy "budget":

    BudgetMs "budget_ms" 1000 in 200..=60000 "milliseconds" Device AtOnce
        "Time that the device may need to write all dirty data: the longest wait of a full sync, an NFS COMMIT or an eject. A larger budget lets longer bursts pass without a pause. Many writers on a device where a seek, or a flash block, is dear get up to five times as much, so that their runs stay long.";
    PortionBytes "writer_portion_bytes" 8388608 in 1048576..=67108864 or 0 "bytes" Device AtOnce
        "Bytes that a writer dirties at a time while many write to a device whose runs are dear; then it waits for the others. Runs get long and the debt stays small, but each writer waits long. 100 writers to a disk, simulated: with 8 MiB they get 90 % of its throughput, owe 1.7 s and wait 5 s at a time; evenly about 65 %, 1.8 s and 0.5 s. 0: all write evenly, and the budget is stretched.";
    InFlightMs "writeback_in_flight_ms" 0 in 10..=500 or 0 "milliseconds" Device AtOnce
        "Time that the device may need for the write requests in flight. A sync or a new reader waits behind them. 0: a tenth of budget_ms, at most 30.";
    HangErrorMs "hang_error_ms" 0 in 10000..=86400000 or 0 "milliseconds" Device AtOnce
        "Time without a completion after which a device with requests refuses its writers and syncs, until it completes a request again. They fail with a time-out, over NFS with NFS3ERR_IO (after JUKEBOX, clients would try again for ever). No written data is lost: it stays dirty, and is written once the device goes on. 0: writers wait as long as it takes. Disks spin up, so values below 10 s are refused.";
    IdleWriteback "idle_writeback" 1 in 0..=1 "0 or 1" Device AtOnce
        "1: the flusher writes a file that nobody has touched for a while, at first 200 ms, while the device would be idle. 0: it writes only data above a threshold or too old, which suits a disk that should spin down. It is off while a dirty_background knob is set: then the flusher writes from that amount on.";
}

/// The knobs of one device, in the law's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knobs {
    /// H: the budget.
    pub budget_ns: Cost,
    /// L: device time that may be in flight.
    pub in_flight_ns: Cost,
    /// Bytes that a payer dirties at a time where runs are dear; 0: all enter evenly.
    pub portion_bytes: u64,
    /// The background line of `dirty_background_centisecs`; `None` leaves the line to the law.
    pub background_ns: Option<Cost>,
    /// The background line of `dirty_background_bytes`; `None` leaves the line to the law.
    pub background_bytes: Option<u64>,
    /// Age at which data is written; [`u64::MAX`] is never.
    pub expire_ns: u64,
    /// Whether files left alone are written while the device would idle. Off if a knob sets the background line, or if
    /// data does not expire.
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
            portion_bytes: values.own.get(BudgetKnob::PortionBytes),
            background_ns: set_ns(values.background_centisecs, Nanos::CENTISECOND),
            background_bytes: (values.device_background_bytes > 0).then_some(values.device_background_bytes),
            expire_ns: values.expire_ns,
            idle: values.own.get(BudgetKnob::IdleWriteback) > 0
                && values.background_centisecs == 0
                && values.device_background_bytes == 0
                && values.expire_ns < u64::MAX,
        }
    }

    /// Whether a knob says from when on the flusher writes.
    pub fn has_background(&self) -> bool {
        self.background_ns.is_some() || self.background_bytes.is_some()
    }
}

#[cfg(test)]
mod tests;
