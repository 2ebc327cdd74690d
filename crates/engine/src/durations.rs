//! How long waits took: a histogram of fixed size that threads fill without a lock.
//!
//! Sixteen buckets to each power of two of nanoseconds, as in HDR histograms: what is told of a quantile is the
//! middle of its bucket, at most 1/32 (3.2 percent) off. The longest is exact.
//!
//! Owns: the buckets, quantiles. Does not own: what is measured.
//! Invariants: noting allocates nothing and takes no lock. What is told at a time may miss what was noted in the
//! last instants, never anything earlier.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets to a power of two, as a power of two.
const STEPS_LOG: u32 = 4;

const STEPS: u64 = 1 << STEPS_LOG;

/// One for each nanosecond below [`STEPS`], then as many for each power of two.
const BUCKETS: usize = (u64::BITS - STEPS_LOG + 1) as usize * STEPS as usize;

/// The histogram.
pub(crate) struct Durations {
    counts: Box<[AtomicU64]>,
    ns: AtomicU64,
    max_ns: AtomicU64,
}

/// How long waits of one kind took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitTimes {
    /// How many have ended.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub ns: u64,
    /// Half of them took so long at most; as the other quantiles, at most 3.2 percent off.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// 999 of 1,000.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS_LOG;
    shift as usize * STEPS as usize + (ns >> shift) as usize
}

/// The middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    let (power, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match power.checked_sub(1) {
        None => step,
        Some(shift) => ((STEPS + step) << shift) + (1 << shift) / 2,
    }
}

impl Default for Durations {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { counts, ns: AtomicU64::new(0), max_ns: AtomicU64::new(0) }
    }
}

impl Durations {
    /// One took so long.
    pub(crate) fn note(&self, ns: u64) {
        self.counts[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// How long they took so far.
    pub(crate) fn times(&self) -> WaitTimes {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let (count, max_ns) = (counts.iter().sum(), self.max_ns.load(Ordering::Relaxed));
        let quantile = |per_mille: u128| {
            let rank = (u128::from(count) * per_mille).div_ceil(1000).max(1) as u64;
            let mut below = 0;
            let found = counts.iter().position(|count| {
                below += count;
                below >= rank
            });
            found.map_or(0, |bucket| middle_of(bucket).min(max_ns))
        };
        WaitTimes {
            count,
            ns: self.ns.load(Ordering::Relaxed),
            p50_ns: quantile(500),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns,
        }
    }
}

#[cfg(test)]
mod tests;
