//! The first part: hit ratios of all policies over all generators, with no dirty page.
//!
//! Owns: the list of policies, a cell of the table, figures over all cells.
//! Does not own: the policies, the generators, the form of a cell (`findings`).
//! Invariants: all policies of a cell see the same touches.

use afflux_engine::eviction::EvictionKind;
use afflux_workloads::touches::{Generator, Sequence, Sizes};

use super::ours::Ours;
use super::part::Part;
use super::references::{Arc, Belady, Cache, Counts, Queue, S3Fifo, Sieve, run};

/// Policies, in the order of all tables.
pub(super) const POLICIES: &[&str] = &["fifo", "lru", "arc", "two-list", "s3-fifo", "sieve", "s3-window", "belady"];

/// The engine's policies.
pub(super) const ENGINES: [EvictionKind; 2] = afflux_linux_policies::EVICTIONS;

/// How far the default may be behind the best of the others, as a ratio of hits.
const MARGIN: f64 = 0.01;

/// One generator with one cache size, under all policies.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) generator: &'static str,
    /// The part of the pages that the cache holds.
    pub(super) part: Part,
    /// In the order of [`POLICIES`]; `None` for a policy that did not run.
    pub(super) counts: Vec<Counts>,
    /// Pages looked at for each miss, for policies that count them.
    pub(super) looks: Vec<Option<f64>>,
}

impl Cell {
    pub(super) fn run(generator: &Generator, part: Part, sizes: Sizes, seed: u64) -> Self {
        let sequence = generator.sequence(sizes, seed);
        let (mut counts, mut looks) = (Vec::new(), Vec::new());
        for policy in POLICIES {
            let mut cache = cache(policy, sizes.frames as usize, &sequence);
            let count = run(&mut *cache, &sequence.touches, sequence.touches.len() / 4);
            // Looks are counted over all touches, so the misses here include the warm-up's.
            let misses = count.miss_ratio() * sequence.touches.len() as f64;
            looks.push(cache.looked_at().map(|looked| looked as f64 / misses.max(1.0)));
            counts.push(count);
        }
        Self { generator: generator.name, part, counts, looks }
    }

    pub(super) fn hit_ratio(&self, policy: &str) -> f64 {
        at(policy).map_or(0.0, |at| self.counts[at].hit_ratio())
    }

    /// The share of FIFO's misses that the policy saves; if FIFO has fewer, minus the share of the policy's misses that
    /// FIFO saves.
    pub(super) fn miss_reduction(&self, policy: &str) -> f64 {
        let (fifo, own) = (1.0 - self.hit_ratio("fifo"), 1.0 - self.hit_ratio(policy));
        let most = fifo.max(own);
        if most > 0.0 { (fifo - own) / most } else { 0.0 }
    }

    /// Of the hits that Belady's policy has and LRU lacks, the share that this policy has. `None` if Belady's gains at
    /// most half a percent of all touches.
    pub(super) fn gap_closed(&self, policy: &str) -> Option<f64> {
        let (lru, best) = (self.hit_ratio("lru"), self.hit_ratio("belady"));
        (best - lru > 0.005).then(|| (self.hit_ratio(policy) - lru) / (best - lru))
    }

    /// [`to_best`] of this cell.
    pub(super) fn to_best(&self) -> f64 {
        let misses: Vec<u64> = self.counts.iter().map(|count| count.touches - count.hits).collect();
        to_best(&misses)
    }

    /// How far the default is behind the best of two-list, s3-fifo and sieve, if by more than [`MARGIN`].
    pub(super) fn shortfall(&self) -> Option<f64> {
        let best =
            ["two-list", "s3-fifo", "sieve"].map(|policy| self.hit_ratio(policy)).into_iter().fold(0.0, f64::max);
        let behind = best - self.hit_ratio("s3-window");
        (behind > MARGIN).then_some(behind)
    }
}

/// Pages that the default reads, for each that the best of the others reads, in the order of [`POLICIES`]. FIFO, the
/// base of other figures, is none of these. Nor is Belady's policy, which knows the future.
pub(super) fn to_best(misses: &[u64]) -> f64 {
    let default = EvictionKind::default().name;
    let of = |policy: &str| at(policy).map_or(0, |at| misses[at]);
    let others = POLICIES.iter().filter(|policy| !["fifo", "belady", default].contains(*policy));
    of(default) as f64 / others.map(|policy| of(policy)).min().unwrap_or(0).max(1) as f64
}

fn at(policy: &str) -> Option<usize> {
    POLICIES.iter().position(|name| *name == policy)
}

pub(super) fn cache(policy: &str, frames: usize, sequence: &Sequence) -> Box<dyn Cache> {
    let pages = sequence.pages() as usize;
    match policy {
        "fifo" => Box::new(Queue::fifo(frames, pages)),
        "lru" => Box::new(Queue::lru(frames, pages)),
        "arc" => Box::new(Arc::new(frames, pages)),
        "s3-fifo" => Box::new(S3Fifo::new(frames, pages)),
        "sieve" => Box::new(Sieve::new(frames, pages)),
        "belady" => Box::new(Belady::new(frames, pages, &sequence.touches)),
        engines => {
            let kind = afflux_linux_policies::eviction(engines).expect("the others are the engine's");
            Box::new(Ours::new(kind, frames, pages))
        }
    }
}

/// The tenth percentile, the mean, the ninetieth percentile and the minimum of some figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) p10: f64,
    pub(super) mean: f64,
    pub(super) p90: f64,
    pub(super) worst: f64,
}

impl Spread {
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return Self::default() };
        let at = |share: f64| sorted[(last as f64 * share).round() as usize];
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Self { p10: at(0.1), mean, p90: at(0.9), worst: sorted[0] }
    }
}

#[cfg(test)]
mod tests;
