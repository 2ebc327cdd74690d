//! What of an estimator outlives it: to be shown, and to be kept for the next start.
//!
//! Owns: both forms. Does not own: where they are kept, and by which name of the device.
//! Invariants: plain numbers. What is read back is brought within the bounds of prices, whatever it was.

use crate::prices::Prices;

/// What is known of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrices {
    /// As learned, or as taken for granted before anything is.
    pub prices: Prices,
    /// Windows that were learned from.
    pub windows: u32,
    /// For how long they have not been checked against the device; nothing if they never were since the start.
    pub age_ns: Option<u64>,
}

/// What an estimator knows, to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// r and b of reads.
    pub reads: KnownPrices,
    /// r and b of writes.
    pub writes: KnownPrices,
    /// Too little is known of writes for these prices to be used as they are.
    pub is_cold: bool,
    /// How often the prices in force for writes have moved twofold.
    pub generation: u64,
}

/// What is kept of a device until the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedPrices {
    /// r of writes.
    pub write_run_ns: u64,
    /// b of writes.
    pub write_mib_ns: u64,
    /// r of reads.
    pub read_run_ns: u64,
    /// b of reads.
    pub read_mib_ns: u64,
}

impl RememberedPrices {
    pub(super) fn of(reads: Prices, writes: Prices) -> Self {
        Self {
            write_run_ns: writes.run_ns,
            write_mib_ns: writes.mib_ns,
            read_run_ns: reads.run_ns,
            read_mib_ns: reads.mib_ns,
        }
    }

    pub(super) fn reads(&self) -> Prices {
        Prices { run_ns: self.read_run_ns, mib_ns: self.read_mib_ns }.within_bounds()
    }

    pub(super) fn writes(&self) -> Prices {
        Prices { run_ns: self.write_run_ns, mib_ns: self.write_mib_ns }.within_bounds()
    }
}
