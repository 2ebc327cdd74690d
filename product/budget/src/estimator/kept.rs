//! What of an estimator outlives it: to be shown, and to be kept for the next start.
//!
//! Owns: both forms. Does not own: where they are kept, and by which name of the device.
//! Invariants: plain numbers. What is read back and lies outside the bounds of prices is refused, or brought within.

use std::collections::BTreeMap;

use crate::prices::{MIB_NS, Prices, RUN_NS};

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

/// By which names they are kept.
const NAMES: [&str; 4] = ["write_run_ns", "write_mib_ns", "read_run_ns", "read_mib_ns"];

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

    /// By name, to be written down.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let Self { write_run_ns, write_mib_ns, read_run_ns, read_mib_ns } = *self;
        NAMES.map(str::to_owned).into_iter().zip([write_run_ns, write_mib_ns, read_run_ns, read_mib_ns]).collect()
    }

    /// As it was written down.
    ///
    /// # Errors
    /// When a price is missing, or is none that a device can have; the error says which, and what it may be.
    pub fn from_named(named: &BTreeMap<String, u64>) -> Result<Self, String> {
        let value = |name: &str| named.get(name).copied().ok_or_else(|| format!("{name} is missing"));
        let [write_run_ns, write_mib_ns, read_run_ns, read_mib_ns] = NAMES.map(value);
        let read = Self {
            write_run_ns: write_run_ns?,
            write_mib_ns: write_mib_ns?,
            read_run_ns: read_run_ns?,
            read_mib_ns: read_mib_ns?,
        };
        for (name, value, (least, most)) in read.with_bounds() {
            if !(least..=most).contains(&value) {
                return Err(format!("{name} is {value}, and prices go from {least} to {most}"));
            }
        }
        Ok(read)
    }

    fn with_bounds(&self) -> [(&'static str, u64, (u64, u64)); 4] {
        let Self { write_run_ns, write_mib_ns, read_run_ns, read_mib_ns } = *self;
        let [write_run, write_mib, read_run, read_mib] = NAMES;
        [
            (write_run, write_run_ns, RUN_NS),
            (write_mib, write_mib_ns, MIB_NS),
            (read_run, read_run_ns, RUN_NS),
            (read_mib, read_mib_ns, MIB_NS),
        ]
    }

    pub(super) fn reads(&self) -> Prices {
        Prices { run_ns: self.read_run_ns, mib_ns: self.read_mib_ns }.within_bounds()
    }

    pub(super) fn writes(&self) -> Prices {
        Prices { run_ns: self.write_run_ns, mib_ns: self.write_mib_ns }.within_bounds()
    }
}
