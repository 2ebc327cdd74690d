//! The cost of a device's reads in its own time, learned from their ends, and the size of windows that follows.
//!
//! Three prices: a run that the device has to seek to; the latency, which requests in flight divide; and bytes. A
//! window of time with only reads in flight yields their work: the runs, the number of starts from an idle device, the
//! bytes. The ratio of the time to the cost of that work corrects the prices. Blame is in proportion to the squared
//! part of the cost, so that streams hardly touch the price of a run, and scattered pages that of bytes.
//!
//! The engine learns these prices by itself, apart from the policy for writers: readahead must work under every policy.
//! It needs the prices only for sizes of windows, where a factor of two does not matter. A window is worth reading
//! ahead if the device spends most of its time on bytes and little on seeks, and if it is requested long enough before
//! the reader comes. So its size is the amount that the device moves in two times: the time worth one start elsewhere,
//! and the latency of an answer.
//!
//! Owns: the prices, the window of learning, how far a window is believed; the law of sizes.
//! Does not own: when requests begin and end (`devices::in_flight`), the growth of a stream's window (`afflux`).
//! Invariants: prices stay within bounds. A window in which other requests were in flight, or a read failed, teaches
//! nothing. One stalled window moves prices little: only the second is believed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Prices before anything is known. A typical disk's will do, since a price that is too large is blamed first.
const PRIOR: ReadPrices = ReadPrices { run_ns: 10_000_000, latency_ns: 100_000, mib_ns: 41_943_040 };
/// Bounds of times, and of the price of a MiB: 100 GB/s.
const NS: (u64, u64) = (1_000, 10_000_000_000);
const MIB_NS_MIN: u64 = 10_000;
const MIB: u128 = 1 << 20;
const ONE: u64 = 1024;
/// A window of a young device ends with each read that leaves it idle.
const YOUNG_WINDOWS: u32 = 8;
/// Reads of a window: if they leave the device idle, and if it is never idle.
const READS: u64 = 8;
const READS_BUSY: u64 = 128;
/// Reads of this size on average: a few of them are a window.
const READ_BYTES_LARGE: u64 = 2 << 20;
/// The shortest call is forgotten after so many reads, or twice as many.
const SHORTEST_READS: u32 = 256;
/// Bytes for each start from an idle device above which a window shows the cost of bytes.
const BYTES_A_START: u64 = 1 << 20;
/// The error of a window beyond which a second one must confirm it.
const STALL: u64 = 2 * ONE;

/// The cost of reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadPrices {
    /// The price of a run that the device has to seek to: it does nothing else meanwhile.
    pub(crate) run_ns: u64,
    /// The time before an answer, in which other requests are served.
    pub(crate) latency_ns: u64,
    /// The price of a MiB.
    pub(crate) mib_ns: u64,
}

/// The work of a window.
#[derive(Clone, Copy, Default, Debug)]
struct ReadWork {
    runs: u64,
    /// How often a read began while none was in flight.
    starts: u64,
    bytes: u64,
    reads: u64,
}

#[derive(Debug)]
pub(crate) struct Learner {
    prices: ReadPrices,
    work: ReadWork,
    /// The clock of reads when the window began.
    began_ns: u64,
    spoiled: bool,
    windows: u32,
    last_ratio: u64,
    /// The shortest calls of this period and of the last one.
    shortest_ns: [u64; 2],
    period_reads: u32,
    /// The time of a MiB in the last window, whatever it was spent on.
    last_mib_ns: u64,
}

impl Default for Learner {
    fn default() -> Self {
        let (work, began_ns) = (ReadWork::default(), 0);
        Self {
            prices: PRIOR,
            work,
            began_ns,
            spoiled: false,
            windows: 0,
            last_ratio: ONE,
            shortest_ns: [u64::MAX; 2],
            period_reads: 0,
            last_mib_ns: u64::MAX,
        }
    }
}

impl Learner {
    pub(crate) fn prices(&self) -> &ReadPrices {
        &self.prices
    }

    /// A read took so long.
    pub(crate) fn note_call(&mut self, ns: u64) {
        self.period_reads += 1;
        if self.period_reads > SHORTEST_READS {
            (self.shortest_ns, self.period_reads) = ([u64::MAX, self.shortest_ns[0]], 1);
        }
        self.shortest_ns[0] = self.shortest_ns[0].min(ns);
    }

    /// MiB that are read in the time of a call, as fast as in the last window; 0 if that is not known.
    pub(crate) fn call_mib(&self) -> u64 {
        let [now, last] = self.shortest_ns;
        let call_ns = Some(now.min(last)).filter(|ns| *ns < u64::MAX).unwrap_or(0);
        call_ns.div_ceil(self.last_mib_ns.max(1))
    }

    /// A read begins, beside `reads_in_flight` others; `alone` if only reads are in flight.
    pub(crate) fn begins(&mut self, reads_in_flight: u32, alone: bool) {
        self.spoiled |= !alone;
        self.work.starts += u64::from(reads_in_flight == 0);
    }

    /// A read of `runs` runs has ended, or failed if it moved nothing; `left` reads are still in flight. `reads_ns` is
    /// the clock of time with reads in flight. Returns the prices if they have moved.
    pub(crate) fn ends(&mut self, runs: u64, bytes: u64, left: u32, alone: bool, reads_ns: u64) -> Option<ReadPrices> {
        self.spoiled |= !alone || bytes == 0;
        self.work.runs += runs;
        self.work.bytes += bytes;
        self.work.reads += 1;
        let enough = if self.windows < YOUNG_WINDOWS { 1 } else { READS };
        let ReadWork { reads, bytes: all, .. } = self.work;
        let is_large = reads >= READS && all >= reads * READ_BYTES_LARGE;
        if !(left == 0 && reads >= enough || reads >= READS_BUSY || is_large) {
            return None;
        }
        let (work, took_ns) = (std::mem::take(&mut self.work), reads_ns.saturating_sub(self.began_ns));
        self.began_ns = reads_ns;
        self.last_mib_ns = (u128::from(took_ns) * MIB / u128::from(work.bytes.max(1))) as u64;
        if std::mem::take(&mut self.spoiled) || took_ns == 0 {
            return None;
        }
        self.learn(work, took_ns);
        Some(self.prices)
    }

    fn learn(&mut self, work: ReadWork, took_ns: u64) {
        let costs = self.prices.costs(work);
        let cost = costs.iter().sum::<u128>().max(1);
        let ratio = (u128::from(ONE) * u128::from(took_ns) / cost).clamp(64, 16 * u128::from(ONE)) as u64;
        let believed = ratio.min(STALL.max(self.last_ratio));
        self.last_ratio = ratio;
        self.windows = self.windows.saturating_add(1);
        let damping = if (ONE * 2 / 3..ONE * 3 / 2).contains(&believed) { 4 } else { 2 };
        // Time lost in a small request may be due to the seek as well as to the bytes. The seek is blamed: windows grow
        // by that, and larger windows show the truth.
        let tells_of_bytes = believed < ONE || work.bytes >= work.starts * BYTES_A_START;
        let blamed = if tells_of_bytes || costs[0] + costs[1] == 0 { costs } else { [costs[0], costs[1], 0] };
        self.prices.move_by(cost, blamed, believed, damping);
        self.prices.cost_at_most(work, took_ns);
    }
}

impl ReadPrices {
    /// The costs of the work: its runs, its starts, its bytes.
    fn costs(&self, work: ReadWork) -> [u128; 3] {
        let product = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let bytes = product(work.bytes, self.mib_ns) / MIB;
        [product(work.runs, self.run_ns), product(work.starts, self.latency_ns), bytes]
    }

    /// No part of the work can have taken longer than all of it.
    fn cost_at_most(&mut self, work: ReadWork, took_ns: u64) {
        let most = |count: u64| took_ns.checked_div(count).map_or(u64::MAX, |each_ns| each_ns.max(NS.0));
        self.run_ns = self.run_ns.min(most(work.runs));
        self.latency_ns = self.latency_ns.min(most(work.starts));
    }

    /// Moves the blamed prices, each by its part of the error. With a `damping` of 1 the total cost would become
    /// `ratio` 1,024ths of itself.
    fn move_by(&mut self, mut all: u128, mut costs: [u128; 3], ratio: u64, damping: i128) {
        // Products of these numbers fit.
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

/// The part of a device's time that streams have for bytes: one start in 50.
const STARTS: u64 = 49;
/// The most time that one start may be worth.
const STARTS_NS_MAX: u64 = 64_000_000;
/// Time of an answer beside the device's: to notice it, and to act upon it.
const NOTICE_NS: u64 = 100_000;
/// Windows are multiples of this many pages, and at least that.
const STEP_PAGES: u64 = 32;
/// The most pages of a window: 128 MiB.
const MOST_PAGES: u64 = 32_768;
const PAGES_A_MIB: u64 = 256;
/// A window lasts for so many calls of a store.
const CALLS: u64 = 2;
/// The most pages of a window of a store, 32 MiB: a stream has three ahead of it.
const EARLY_PAGES_MAX: u64 = 8192;

/// Windows on a device, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowSizes {
    /// The largest window.
    pub most: u64,
    /// The first window: it adds a quarter to the cost of the miss.
    pub first: u64,
    /// A gap that is cheaper to read than to leap over.
    pub gap: u64,
    /// A window is requested when the reader is two windows away from it. The store then always has a request in its
    /// queue, and begins it as bytes of others come.
    pub early: bool,
}

impl WindowSizes {
    /// The law for a device with these read prices. `call_mib`: for a store, the MiB that it delivers during a call.
    /// Its calls overlap. A window that lasts for several calls shows whether more of them bring more, and so on up to
    /// the store's bandwidth.
    pub(crate) fn of(prices: &ReadPrices, call_mib: u64) -> Self {
        let ReadPrices { run_ns, latency_ns, mib_ns } = *prices;
        let pages = |ns: u64| ns.saturating_mul(PAGES_A_MIB) / mib_ns.max(1);
        let time_ns = STARTS.saturating_mul(run_ns).min(STARTS_NS_MAX) + 2 * (latency_ns + NOTICE_NS);
        let by_calls = CALLS.saturating_mul(call_mib).saturating_mul(PAGES_A_MIB).min(EARLY_PAGES_MAX);
        let most = if call_mib > 0 { pages(time_ns).min(EARLY_PAGES_MAX).max(by_calls) } else { pages(time_ns) };
        Self {
            most: (most / STEP_PAGES * STEP_PAGES).clamp(STEP_PAGES, MOST_PAGES),
            first: (pages(run_ns + latency_ns) / 4).clamp(4, 64),
            gap: pages(run_ns),
            early: call_mib > 0,
        }
    }
}

/// A law for one writing thread and concurrent readers.
#[derive(Debug)]
pub(crate) struct SharedWindowSizes(AtomicU64);

impl SharedWindowSizes {
    pub(crate) fn new(window_sizes: WindowSizes) -> Self {
        Self(AtomicU64::new(window_sizes.packed()))
    }

    pub(crate) fn set(&self, window_sizes: WindowSizes) {
        self.0.store(window_sizes.packed(), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> WindowSizes {
        let packed = self.0.load(Ordering::Relaxed);
        WindowSizes {
            most: packed & 0xffff,
            first: packed >> 16 & 0xff,
            gap: packed >> 24 & 0xffff,
            early: packed >> 40 > 0,
        }
    }
}

impl WindowSizes {
    /// The law in one word: the largest window has 16 bits, the first 8.
    fn packed(self) -> u64 {
        self.most | self.first << 16 | self.gap.min(MOST_PAGES) << 24 | u64::from(self.early) << 40
    }
}

#[cfg(test)]
mod tests;
