#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn samples(values: &[f64]) -> Samples {
    Samples(values.to_vec())
}

#[test]
fn the_interval_is_student_s() {
    // Mean 10, squares 4 + 1 + 0 + 1 + 4 = 10, sd = sqrt(10 / 4); t for 4 degrees of freedom is 4.604.
    let estimate = samples(&[8.0, 9.0, 10.0, 11.0, 12.0]).estimate();
    assert_eq!(estimate.mean, 10.0);
    assert!((estimate.sd - 2.5_f64.sqrt()).abs() < 1e-12);
    assert!((estimate.half_width - 4.604 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-12);
    // Two samples have no interval; 31 and 32 use the table's last row.
    assert_eq!(samples(&[1.0, 2.0]).estimate().half_width, f64::INFINITY);
    let many = |count: usize| samples(&(0..count).map(|at| (at % 2) as f64).collect::<Vec<_>>()).estimate();
    let wide = |estimate: Estimate| estimate.half_width / estimate.sd * (estimate.samples as f64).sqrt();
    assert!((wide(many(31)) - 2.750).abs() < 1e-9 && (wide(many(100)) - 2.750).abs() < 1e-9);
    assert!((wide(many(4)) - 5.841).abs() < 1e-9);
}

#[test]
fn a_difference_counts_only_where_the_intervals_are_apart() {
    let base = samples(&[100.0, 100.1, 99.9]).estimate();
    let faster = samples(&[110.0, 110.1, 109.9]).estimate();
    let noisy = samples(&[90.0, 110.0, 130.0]).estimate();
    let gain = faster.gain_percent(&base).unwrap();
    assert!((gain - 10.0).abs() < 1e-9, "{gain}");
    assert_eq!(noisy.gain_percent(&base), None);
}

#[test]
fn variants_take_turns_until_all_are_sure() {
    let mut calls = Vec::new();
    let comparison = compare(3, Repetition { within: 0.01, rounds_min: 4, rounds_max: 10 }, |variant| {
        calls.push(variant);
        5.0
    });
    assert!(comparison.sure);
    assert_eq!(calls.len(), 3 + 3 * 4);
    assert_eq!(calls[..9], [0, 1, 2, 0, 1, 2, 1, 2, 0]);
    let mut at = 0.0;
    let unsure = compare(1, Repetition { within: 0.01, rounds_min: 3, rounds_max: 6 }, |_| {
        at += 1.0;
        at
    });
    assert!(!unsure.sure);
    assert_eq!(unsure.variants[0].values(), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn a_percentile_is_a_value_that_so_many_do_not_exceed() {
    let all: Vec<u64> = (1..=1000).collect();
    assert_eq!((percentile(&all, 500), percentile(&all, 999), percentile(&all, 1000)), (500, 999, 1000));
    assert_eq!((percentile(&[7], 999), percentile(&[], 999)), (7, 0));
}
