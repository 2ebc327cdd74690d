//! Tests of sets of ranges against a set of numbers.

use std::collections::BTreeSet;

use super::Ranges;

#[test]
fn gaps_are_those_of_the_numbers() {
    for seed in 0..500_u64 {
        let (mut ranges, mut numbers) = (Ranges::default(), BTreeSet::new());
        for step in 0..6 {
            let start = (seed * 7 + step * 13 + seed * step) % 30;
            let end = start + (seed + step * 5) % 9;
            ranges.insert(start, end);
            numbers.extend(start..end);
            for from in 0..40 {
                let expected = (from..40).find(|number| !numbers.contains(number));
                assert_eq!(ranges.gap(from, 40), expected, "seed {seed}, step {step}, from {from}");
            }
        }
    }
}
