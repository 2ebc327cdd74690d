//! The part of an estimator that outlives it, for display and for the next start.
//!
//! Owns: both forms. Does not own: where they are persisted, and under which name of the device.
//! Invariants: plain numbers. Prices read back from outside their bounds are refused, or brought within.

use std::collections::BTreeMap;

use crate::prices::{DirectionPrices, MIB_NS, RUN_NS};

/// The known prices of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrices {
    /// The prices as learned, or as assumed before that.
    pub prices: DirectionPrices,
    /// Number of windows learned from.
    pub windows: u32,
    /// Time since the device last confirmed the prices; `None` if it has not since the start.
    pub age_ns: Option<u64>,
}

/// An estimator's knowledge, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimatorSnapshot {
    /// r and b of reads.
    pub reads: KnownPrices,
    /// r and b of writes.
    pub writes: KnownPrices,
    /// Whether too little is known of writes to use these prices as they are.
    pub is_cold: bool,
    /// How often the prices in force for writes have moved twofold.
    pub generation: u64,
}

/// Names under which prices are persisted.
const NAMES: [&str; 4] = ["write_run_ns", "write_mib_ns", "read_run_ns", "read_mib_ns"];

/// The prices of a device to persist until the next start.
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
    pub(super) fn of(reads: DirectionPrices, writes: DirectionPrices) -> Self {
        Self {
            write_run_ns: writes.run_ns,
            write_mib_ns: writes.mib_ns,
            read_run_ns: reads.run_ns,
            read_mib_ns: reads.mib_ns,
        }
    }

    /// The prices by name, to be written down.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let Self { write_run_ns, write_mib_ns, read_run_ns, read_mib_ns } = *self;
        NAMES.map(str::to_owned).into_iter().zip([write_run_ns, write_mib_ns, read_run_ns, read_mib_ns]).collect()
    }

    /// Restores prices that were written down.
    ///
    /// # Errors
    /// If a price is missing or out of bounds. The error names the price and its bounds.
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

    pub(super) fn reads(&self) -> DirectionPrices {
        DirectionPrices { run_ns: self.read_run_ns, mib_ns: self.read_mib_ns }.within_bounds()
    }

    pub(super) fn writes(&self) -> DirectionPrices {
        DirectionPrices { run_ns: self.write_run_ns, mib_ns: self.write_mib_ns }.within_bounds()
    }
}
