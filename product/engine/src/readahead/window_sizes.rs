//! The size of windows on a device, in the device's own time.
//!
//! A window is worth reading ahead if the device spends most of its time on bytes and little on seeks, and if it is
//! requested long enough before the reader comes. So its size is the amount that the device moves in two times: the
//! time worth one start elsewhere, and the latency of an answer.
//!
//! Owns: the law. Does not own: the cost of the device's reads (`prices`), the growth of a stream's window.
//! Invariants: pure arithmetic.

use std::sync::atomic::{AtomicU64, Ordering};

use super::prices::ReadPrices;

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
    /// A window is requested when the reader is two windows away from it. The store then always has a request that
    /// waits for its turn, and begins it as bytes of others come.
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
