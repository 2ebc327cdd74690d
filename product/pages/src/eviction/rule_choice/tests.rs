mod miniature;
mod sample;

use super::*;
use crate::eviction::{Admitted, EvictionKind, Offline};

impl SmallQueueSize {
    /// A size that is not measured.
    pub(in crate::eviction) fn fixed(frames: u32, small: u32) -> Self {
        let share = Self { below: 0, ..Self::new(frames) };
        share.small.store(small, Ordering::Relaxed);
        share
    }
}

/// Reads pages in order under the default policy; returns how many were not there, of the second half.
fn misses(frames: u32, reads: &[u64]) -> usize {
    let mut cache = Offline::new(EvictionKind::default(), frames);
    let mut there = std::collections::BTreeMap::new();
    let mut missed = 0;
    for (at, page) in reads.iter().enumerate() {
        if let Some(frame) = there.get(page) {
            cache.read(*frame);
            continue;
        }
        while !cache.has_free_frame() {
            cache.evict(1, |page| {
                there.remove(&page);
            });
        }
        there.insert(*page, cache.admit(*page, Admitted::Demand).expect("there is room"));
        missed += usize::from(at >= reads.len() / 2);
    }
    missed
}

#[test]
fn a_loop_that_nearly_fits_is_mostly_kept() {
    let reads: Vec<u64> = (0..20).flat_map(|_| 0..4400).collect();
    let missed = misses(4000, &reads);
    // A tenth does not fit. The least recently used page is always the next one, so lists by use miss all.
    assert!(missed * 3 < reads.len() / 2, "{missed} of {}", reads.len() / 2);
}

#[test]
fn pages_that_come_back_once_get_larger_queues() {
    // Each page comes a second time after 1,000 others, and never again. Small queues of a 50th forget it by then.
    let reads: Vec<u64> = (0..40_000).flat_map(|page: u64| [page + 1000, page]).collect();
    let missed = misses(4000, &reads);
    assert!(missed < reads.len() * 3 / 10, "{missed} of {}", reads.len() / 2);
}

#[test]
fn memory_of_the_measure_is_less_than_three_bytes_a_frame() {
    for frames in [16_384_u32, 1 << 20] {
        let bytes = SmallQueueSize::new(frames).bytes() as f64 / f64::from(frames);
        assert!(bytes < 3.0, "{bytes} a frame of {frames}");
    }
    assert!(SmallQueueSize::new(1 << 26).bytes() < 2 << 20, "the largest sample");
}
