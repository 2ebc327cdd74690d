//! How long waits took: a histogram of fixed size that threads fill without a lock.
//!
//! Sixteen buckets to each power of two of nanoseconds, as in HDR histograms. A reported quantile is the middle of its
//! bucket, at most 1/32 (3.2 percent) off. The longest wait is exact.
//!
//! Owns: the buckets, quantiles; a second form that stores only used buckets, for the many who seldom wait.
//! Does not own: the measurements.
//! Invariants: noting in the first form allocates nothing and takes no lock. A report may miss notes of the last
//! instants, never earlier ones.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets to a power of two, as a power of two.
const STEPS_LOG: u32 = 4;

const STEPS: u64 = 1 << STEPS_LOG;

/// One bucket for each nanosecond below [`STEPS`], then [`STEPS`] for each power of two.
const BUCKETS: usize = (u64::BITS - STEPS_LOG + 1) as usize * STEPS as usize;

/// The durations of one kind of waits, in buckets.
pub(crate) struct Durations {
    counts: Box<[AtomicU64]>,
    ns: AtomicU64,
    max_ns: AtomicU64,
}

/// How long waits of one kind took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WaitTimes {
    /// The number of waits that have ended.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub ns: u64,
    /// Half of the waits took at most this long; like the other quantiles, at most 3.2 percent off.
    pub p50_ns: u64,
    /// 99 of 100 waits took at most this long.
    pub p99_ns: u64,
    /// 999 of 1,000 waits took at most this long.
    pub p999_ns: u64,
    /// Longest of the durations.
    pub max_ns: u64,
}

/// The number of waits of one kind by duration, in powers of two: the form for callers that add up and divide
/// histograms elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitHistogram {
    /// At index k, the number of waits of 2^k nanoseconds or more, and less than twice that. Waits of no time count at
    /// index 0.
    pub by_power: [u64; u64::BITS as usize],
    /// Their sum in nanoseconds.
    pub ns: u64,
}

impl Default for WaitHistogram {
    fn default() -> Self {
        Self { by_power: [0; u64::BITS as usize], ns: 0 }
    }
}

fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS_LOG;
    shift as usize * STEPS as usize + (ns >> shift) as usize
}

/// The power of two at or below a whole bucket.
fn power_of(bucket: usize) -> usize {
    match bucket as u64 / STEPS {
        0 => bucket.max(1).ilog2() as usize,
        power => (power + u64::from(STEPS_LOG) - 1) as usize,
    }
}

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
    /// A wait took `ns`.
    pub(crate) fn note(&self, ns: u64) {
        self.counts[bucket_of(ns)].fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(ns, Ordering::Relaxed);
        self.max_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// The times so far.
    pub(crate) fn times(&self) -> WaitTimes {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let used = counts.iter().enumerate().map(|(bucket, count)| (bucket, *count));
        wait_times(used, self.ns.load(Ordering::Relaxed), self.max_ns.load(Ordering::Relaxed))
    }

    /// The waits so far, by powers of two.
    pub(crate) fn histogram(&self) -> WaitHistogram {
        let mut all = WaitHistogram { ns: self.ns.load(Ordering::Relaxed), ..WaitHistogram::default() };
        for (bucket, count) in self.counts.iter().enumerate() {
            all.by_power[power_of(bucket)] += count.load(Ordering::Relaxed);
        }
        all
    }
}

/// The times for counts by bucket, in ascending order.
fn wait_times(used: impl Iterator<Item = (usize, u64)> + Clone, ns: u64, max_ns: u64) -> WaitTimes {
    let count = used.clone().map(|(_, count)| count).sum();
    let quantile = |per_mille: u128| {
        let rank = (u128::from(count) * per_mille).div_ceil(1000).max(1) as u64;
        let mut below = 0;
        let found = used.clone().find(|(_, count)| {
            below += count;
            below >= rank
        });
        found.map_or(0, |(bucket, _)| middle_of(bucket).min(max_ns))
    };
    WaitTimes { count, ns, p50_ns: quantile(500), p99_ns: quantile(990), p999_ns: quantile(999), max_ns }
}

/// The histogram of a client that seldom waits: memory only for used buckets. Behind a lock.
#[derive(Clone, Default)]
pub(crate) struct FewDurations {
    /// Each used bucket, in ascending order, and its count.
    used: Vec<(u16, u32)>,
    ns: u64,
    max_ns: u64,
}

impl FewDurations {
    /// A wait took `ns`.
    pub(crate) fn note(&mut self, ns: u64) {
        self.add(bucket_of(ns) as u16, 1);
        self.ns = self.ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn add(&mut self, bucket: u16, times: u32) {
        match self.used.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.used[at].1 = self.used[at].1.saturating_add(times),
            Err(at) => self.used.insert(at, (bucket, times)),
        }
    }

    /// Adds the counts of the other histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.used.iter().for_each(|(bucket, times)| self.add(*bucket, *times));
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The times so far.
    pub(crate) fn times(&self) -> WaitTimes {
        wait_times(
            self.used.iter().map(|(bucket, times)| (usize::from(*bucket), u64::from(*times))),
            self.ns,
            self.max_ns,
        )
    }
}

const _: () = assert!(BUCKETS <= u16::MAX as usize);

#[cfg(test)]
mod tests;
