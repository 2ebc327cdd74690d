mod miniature;
mod sample;

use super::*;
use crate::eviction::{Admitted, EvictionKind, Offline};

impl RuleChoice {
    /// A choice that is not measured.
    pub(in crate::eviction) fn fixed(frames: u32, now: InForce) -> Self {
        let choice = Self { below: 0, ..Self::new(frames) };
        choice.set(now);
        choice
    }

    pub(in crate::eviction) fn set(&self, now: InForce) {
        self.in_force.store(now.packed(), Ordering::Relaxed);
    }
}

#[test]
fn what_is_in_force_fits_in_a_word() {
    for small in [None, Some(1), Some(u32::MAX)] {
        for adoptions in [0, 1, u32::MAX] {
            let now = InForce { small, adoptions };
            assert_eq!(InForce::unpacked(now.packed()), now);
        }
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
fn a_loop_that_nearly_fits_is_mostly_retained() {
    let reads: Vec<u64> = (0..20).flat_map(|_| 0..4400).collect();
    let missed = misses(4000, &reads);
    // A tenth does not fit. The least recently used page is always the next one, so lists by use miss all.
    assert!(missed * 3 < reads.len() / 2, "{missed} of {}", reads.len() / 2);
}

#[test]
fn once_keep_is_better_the_pages_of_a_loop_stay() {
    let reads: Vec<u64> = (0..8).flat_map(|_| 0..11_000).collect();
    let missed = misses(10_000, &reads);
    // An 11th does not fit. A main that gains pages by promotions alone misses a fifth.
    assert!(missed * 100 < 19 * (reads.len() / 2), "{missed} of {}", reads.len() / 2);
}

#[test]
fn pages_that_come_back_once_get_larger_queues() {
    // Each page comes a second time after 1,000 others, and never again. Small queues of a 50th forget it by then.
    let reads: Vec<u64> = (0..40_000).flat_map(|page: u64| [page + 1000, page]).collect();
    let missed = misses(4000, &reads);
    assert!(missed < reads.len() * 3 / 10, "{missed} of {}", reads.len() / 2);
}

#[test]
fn memory_of_the_measure_is_less_than_seven_bytes_a_frame() {
    for frames in [16_384_u32, 1 << 20] {
        let bytes = RuleChoice::new(frames).bytes() as f64 / f64::from(frames);
        assert!(bytes < 7.0, "{bytes} a frame of {frames}");
    }
    assert!(RuleChoice::new(1 << 26).bytes() < 2 << 20, "the largest sample");
}

/// Counts after a page was missed by these rules so many times.
fn counted(events: &[([bool; RULES.len()], usize)]) -> Counts {
    let mut counts = Counts::new(1 << 20);
    events.iter().for_each(|(missed, times)| (0..*times).for_each(|_| counts.add(*missed)));
    counts
}

const KEEP: usize = Rule::Keep as usize;
const SMALL: usize = Rule::Small as usize;

/// All rules miss but one.
fn all_but(rule: usize) -> [bool; RULES.len()] {
    std::array::from_fn(|other| other != rule)
}

#[test]
fn misses_that_all_rules_have_hide_no_difference_between_two() {
    let growing = Rule::Growing as usize;
    let better =
        |all: usize, had: usize| counted(&[([true; RULES.len()], all), (all_but(growing), had)]).better_than(SMALL);
    assert_eq!(better(1000, 40), Some(growing), "4 % of its misses, and six deviations");
    assert_eq!(better(2000, 40), None, "2 %");
    assert_eq!(better(0, 5), None, "two deviations of five pages are more than four");
    assert_eq!(better(0, 7), Some(growing));
}

#[test]
fn pages_are_retained_for_a_large_gain_alone() {
    let better = |had: usize| counted(&[([true; RULES.len()], 1000), (all_but(KEEP), had)]).better_than(SMALL);
    assert_eq!((better(150), better(250)), (None, Some(KEEP)));
}

#[test]
fn a_difference_that_goes_both_ways_is_chance() {
    let growing = Rule::Growing as usize;
    let counts = counted(&[(all_but(growing), 120), (all_but(SMALL), 100)]);
    assert_eq!(counts.better_than(SMALL), None, "20 of 220 pages are less than two deviations");
    assert_eq!(counted(&[(all_but(growing), 120), (all_but(SMALL), 80)]).better_than(SMALL), Some(growing));
}

#[test]
fn old_misses_are_forgotten() {
    let mut counts = Counts::new(100);
    (0..1000).for_each(|_| counts.add([true; RULES.len()]));
    let latest = counts.misses[SMALL] / MISS;
    assert!((180..=220).contains(&latest), "{latest} of about two refills");
}
