//! What a device's reads cost in its own time, learned from their ends.
//!
//! Three prices: what a run costs that the device has to go to, the latency that requests in flight together share,
//! and bytes. A window of time with reads in flight, and nothing else, yields what was done in it: its runs, how often
//! the device had nothing to do before, its bytes. What the prices say of that, against the time, corrects them;
//! blame goes by squared share, so that streams hardly touch the price of a run, nor scattered pages that of bytes.
//!
//! The engine learns these for itself, whatever the policy of writers in force knows: readahead has to stand under
//! every policy, and needs only sizes of windows from them, where a factor of two is no matter.
//!
//! Owns: the prices, the window of learning, how far one is believed.
//! Does not own: when requests begin and end (`devices::usage`), what follows (`law`).
//! Invariants: prices stay within bounds. A window in which something else was in flight, or a read failed, teaches
//! nothing. One stalled window moves prices little: only the second is believed.

/// Prices before anything is known: any of a disk's, since what is too large is blamed first.
const PRIOR: ReadPrices = ReadPrices { run_ns: 10_000_000, latency_ns: 100_000, mib_ns: 41_943_040 };
/// Bounds of times, and of the price of a MiB: 100 GB/s.
const NS: (u64, u64) = (1_000, 10_000_000_000);
const MIB_NS_MIN: u64 = 10_000;
const MIB: u128 = 1 << 20;
const ONE: u64 = 1024;
/// Windows of a device that is young end with each read that leaves it idle.
const YOUNG_WINDOWS: u32 = 8;
/// Reads of a window: if they leave the device idle, and if it is never idle.
const READS: u64 = 8;
const READS_BUSY: u64 = 128;
/// Bytes each time that the device had nothing to do before, from which on they show what bytes cost.
const BYTES_A_START: u64 = 1 << 20;
/// What a window may be off before it takes two.
const STALL: u64 = 2 * ONE;

/// What reads cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadPrices {
    /// A run that the device has to go to: nothing else is done meanwhile.
    pub(crate) run_ns: u64,
    /// What passes before an answer, while other requests are served.
    pub(crate) latency_ns: u64,
    /// A MiB.
    pub(crate) mib_ns: u64,
}

/// What was done in a window.
#[derive(Clone, Copy, Default, Debug)]
struct Work {
    runs: u64,
    /// How often a read began while none was in flight.
    starts: u64,
    bytes: u64,
    reads: u64,
}

/// Learns them.
#[derive(Debug)]
pub(crate) struct Learner {
    prices: ReadPrices,
    work: Work,
    /// The clock of reads when the window began.
    began_ns: u64,
    spoiled: bool,
    windows: u32,
    last_ratio: u64,
}

impl Default for Learner {
    fn default() -> Self {
        let (work, began_ns) = (Work::default(), 0);
        Self { prices: PRIOR, work, began_ns, spoiled: false, windows: 0, last_ratio: ONE }
    }
}

impl Learner {
    /// What is known.
    pub(crate) fn prices(&self) -> &ReadPrices {
        &self.prices
    }

    /// A read begins, beside so many others; `alone` if nothing but reads is in flight.
    pub(crate) fn begins(&mut self, reads_in_flight: u32, alone: bool) {
        self.spoiled |= !alone;
        self.work.starts += u64::from(reads_in_flight == 0);
    }

    /// A read of so many runs has ended, or if it moved nothing has failed; so many are still in flight. `reads_ns`
    /// is for how long any were, ever. Whether prices have moved.
    pub(crate) fn ends(&mut self, (runs, bytes): (u64, u64), (left, alone): (u32, bool), reads_ns: u64) -> bool {
        self.spoiled |= !alone || bytes == 0;
        self.work.runs += runs;
        self.work.bytes += bytes;
        self.work.reads += 1;
        let enough = if self.windows < YOUNG_WINDOWS { 1 } else { READS };
        if !(left == 0 && self.work.reads >= enough || self.work.reads >= READS_BUSY) {
            return false;
        }
        let (work, took_ns) = (std::mem::take(&mut self.work), reads_ns.saturating_sub(self.began_ns));
        self.began_ns = reads_ns;
        let learns = !std::mem::take(&mut self.spoiled) && took_ns > 0;
        if learns {
            self.learn(work, took_ns);
        }
        learns
    }

    fn learn(&mut self, work: Work, took_ns: u64) {
        let costs = self.prices.costs(work);
        let cost = costs.iter().sum::<u128>().max(1);
        let ratio = (u128::from(ONE) * u128::from(took_ns) / cost).clamp(64, 16 * u128::from(ONE)) as u64;
        let believed = ratio.min(STALL.max(self.last_ratio));
        self.last_ratio = ratio;
        self.windows = self.windows.saturating_add(1);
        let damping = if (ONE * 2 / 3..ONE * 3 / 2).contains(&believed) { 4 } else { 2 };
        // What came late in a small request may have been the way there as well as the bytes. It is said of the way:
        // windows are the larger for it, and with them the truth comes out.
        let tells_of_bytes = believed < ONE || work.bytes >= work.starts * BYTES_A_START;
        let blamed = if tells_of_bytes || costs[0] + costs[1] == 0 { costs } else { [costs[0], costs[1], 0] };
        self.prices.move_by(cost, blamed, believed, damping);
        self.prices.cost_at_most(work, took_ns);
    }
}

impl ReadPrices {
    /// What the work costs: its runs, its starts, its bytes.
    fn costs(&self, work: Work) -> [u128; 3] {
        let product = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let bytes = product(work.bytes, self.mib_ns) / MIB;
        [product(work.runs, self.run_ns), product(work.starts, self.latency_ns), bytes]
    }

    /// No part of the work can have taken longer than all of it.
    fn cost_at_most(&mut self, work: Work, took_ns: u64) {
        let most = |count: u64| took_ns.checked_div(count).map_or(u64::MAX, |each_ns| each_ns.max(NS.0));
        self.run_ns = self.run_ns.min(most(work.runs));
        self.latency_ns = self.latency_ns.min(most(work.starts));
    }

    /// Moves the prices of what is blamed, each by its share of what all costs are off: in all they would be `ratio` times what they are, in
    /// 1,024ths, if `damping` were 1.
    fn move_by(&mut self, mut all: u128, mut costs: [u128; 3], ratio: u64, damping: i128) {
        // Products of these fit.
        while all > 1 << 40 {
            (all, costs) = (all >> 8, costs.map(|cost| cost >> 8));
        }
        let squares = costs.iter().map(|cost| cost * cost).sum::<u128>() as i128;
        if squares == 0 {
            return;
        }
        let error = all as i128 * (i128::from(ratio) - i128::from(ONE)) / i128::from(ONE);
        let moved = |price: u64, cost: u128, bounds: (u64, u64)| {
            let step = error * cost as i128 * i128::from(price) / (squares * damping);
            (i128::from(price) + step).clamp(bounds.0.into(), bounds.1.into()) as u64
        };
        self.run_ns = moved(self.run_ns, costs[0], NS);
        self.latency_ns = moved(self.latency_ns, costs[1], NS);
        self.mib_ns = moved(self.mib_ns, costs[2], (MIB_NS_MIN, NS.1));
    }
}

#[cfg(test)]
mod tests;
