use super::*;

#[test]
fn every_time_is_in_a_bucket_that_ends_at_most_a_32nd_above() {
    for log in 0..64 {
        for ns in [1_u64 << log, (1 << log) + (1 << log) / 3, ((1_u128 << (log + 1)) - 1) as u64] {
            let most = most_of(bucket_of(ns));
            assert!(most >= ns && most - ns <= ns / 32, "{ns} is told as {most}");
        }
    }
}

#[test]
fn percentiles_are_those_of_the_nearest_rank() {
    let mut latencies = Latencies::default();
    assert!((latencies.per_mille_ms(999), latencies.max_ms()) == (0.0, 0.0));
    for call in 1..=1000 {
        latencies.add(call * 1_000_000);
    }
    let mut other = Latencies::default();
    other.add(7_000_000_000);
    let near = |found: f64, truth: f64| assert!(found >= truth && found <= truth * 33.0 / 32.0, "{found} {truth}");
    near(latencies.per_mille_ms(500), 500.0);
    near(latencies.per_mille_ms(990), 990.0);
    near(latencies.per_mille_ms(1000), 1000.0);
    latencies.merge(&other);
    assert!(latencies.count() == 1001 && latencies.max_ms() == 7000.0 && latencies.per_mille_ms(1000) == 7000.0);
}
