//! Times of calls: a histogram of fixed size.
//!
//! Owns: the buckets, percentiles.
//! Does not own: the timed calls.
//! Invariants: a percentile is at most a 32nd above the truth and never below it; the longest time is exact.

/// Buckets in a doubling.
const PARTS: u64 = 32;
const PARTS_LOG: u32 = PARTS.trailing_zeros();
const BUCKETS: usize = (PARTS * (65 - PARTS_LOG as u64)) as usize;

/// Times in nanoseconds.
#[derive(Clone)]
pub(crate) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, max_ns: 0 }
    }
}

/// Small times have a bucket each. Larger times share one with all times that begin with the same bits.
fn bucket_of(ns: u64) -> usize {
    let Some(shift) = ns.checked_ilog2().and_then(|log| log.checked_sub(PARTS_LOG)) else { return ns as usize };
    (u64::from(shift + 1) * PARTS + (ns >> shift) - PARTS) as usize
}

/// The longest time of a bucket.
fn most_of(bucket: usize) -> u64 {
    let (row, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    match row.checked_sub(1) {
        None => part,
        Some(shift) => ((PARTS + part) << shift) + ((1 << shift) - 1),
    }
}

impl Latencies {
    pub(crate) fn add(&mut self, ns: u64) {
        self.buckets[bucket_of(ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the times of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, other)| *own += other);
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn max_ms(&self) -> f64 {
        self.max_ns as f64 / 1e6
    }

    /// A bound in milliseconds that `per_mille` of 1,000 calls do not exceed; 0 without calls.
    pub(crate) fn per_mille_ms(&self, per_mille: u64) -> f64 {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.map_or(0, |bucket| most_of(bucket).min(self.max_ns)) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests;
