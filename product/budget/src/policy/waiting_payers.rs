//! How many payers wait, of how many clients, now and on average.
//!
//! Owns: the two averages. Does not own: the counting (the engine), the decisions (`policy`).
//! Invariants: a count holds until the next. In its own time an average follows the count as a charged capacitor would,
//! taken linearly.

use afflux_device::policy::PayerCounts;

use crate::MILLISECOND;

/// A count is kept in 1,024ths.
const ONE: u64 = 1024;
/// Time over which a payer's share is averaged.
const SHORT_NS: u64 = 100 * MILLISECOND;
/// Time over which the number of payers that stretches the budget is averaged.
const LONG_NS: u64 = 1000 * MILLISECOND;

/// Payers that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WaitingPayers {
    now: u64,
    seen_ns: u64,
    short: u64,
    long: u64,
    others: Others,
}

/// Clients with waiting payers, beside the client of the payer in question.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    now: u64,
    seen_ns: u64,
    short: u64,
}

fn towards(average: u64, count: u64, passed_ns: u64, over_ns: u64) -> u64 {
    if passed_ns == 0 || average == count * ONE {
        return average;
    }
    let (from, to, part) = (u128::from(average), u128::from(count * ONE), u128::from(passed_ns.min(over_ns)));
    ((from * (u128::from(over_ns) - part) + to * part) / u128::from(over_ns)) as u64
}

impl WaitingPayers {
    /// `count` payers wait at this instant.
    pub(super) fn note(&mut self, now_ns: u64, count: u64) {
        let passed = now_ns.saturating_sub(self.seen_ns);
        self.short = towards(self.short, self.now, passed, SHORT_NS);
        self.long = towards(self.long, self.now, passed, LONG_NS);
        (self.now, self.seen_ns) = (count, now_ns);
    }

    /// N: the number of payers that share the device.
    pub(super) fn sharing(&self) -> u64 {
        self.now.max(self.short.div_ceil(ONE)).max(1)
    }

    /// The same for one payer: the device is divided among the clients, and a client's part among its payers.
    pub(super) fn sharing_with(&mut self, now_ns: u64, payer: &PayerCounts) -> u64 {
        let Others { now, seen_ns, short } = self.others;
        let others = payer.clients.saturating_sub(1);
        if others == 0 && now == 0 && short == 0 {
            return self.sharing();
        }
        let short = towards(short, now, now_ns.saturating_sub(seen_ns), SHORT_NS);
        self.others = Others { now: others, seen_ns: now_ns, short };
        match others.max(short.div_ceil(ONE)) {
            0 => self.sharing(),
            // Payers without a client are not counted while no client waits.
            others if payer.client_payers == 0 => (others + 1).saturating_mul(self.sharing()),
            others => (others + 1).saturating_mul(payer.client_payers),
        }
    }

    /// How many payers want to write at the same time, over the last second.
    pub(super) fn on_average(&self) -> u64 {
        self.long.div_ceil(ONE).max(1)
    }
}

#[cfg(test)]
mod tests;
