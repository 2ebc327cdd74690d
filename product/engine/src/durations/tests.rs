use super::{BUCKETS, Durations, WaitTimes, bucket_of, middle_of};

/// A generator of its own (xorshift), so that a failing case is the same everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// All magnitudes are equally likely.
    fn duration(&mut self) -> u64 {
        let bits = self.next() % 65;
        self.next().checked_shr(64 - bits as u32).unwrap_or(0)
    }
}

/// The least of sorted durations that covers `per_mille` of a thousand.
fn exact(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1]
}

fn is_near(told: u64, exact: u64) -> bool {
    told.abs_diff(exact) <= exact / 32
}

#[test]
fn every_duration_has_a_bucket_whose_middle_is_near() {
    let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX]);
    for ns in edges {
        assert!(bucket_of(ns) < BUCKETS, "{ns}");
        assert!(is_near(middle_of(bucket_of(ns)), ns), "{ns} as {}", middle_of(bucket_of(ns)));
    }
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    for bucket in 0..BUCKETS {
        assert_eq!(bucket_of(middle_of(bucket)), bucket);
    }
}

#[test]
fn quantiles_are_the_exact_ones_but_for_a_thirty_second() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    for case in 0..300 {
        let (durations, len) = (Durations::default(), 1 + draw.next() % [3, 100, 3000][case % 3]);
        // Some draws are of one magnitude, as real waits are.
        let most = if case % 2 == 0 { u64::MAX >> 8 } else { draw.duration().max(1) >> 8 };
        let mut all: Vec<u64> = (0..len).map(|_| draw.duration() % most.max(1)).collect();
        all.iter().for_each(|ns| durations.note(*ns));
        all.sort_unstable();
        let told = durations.times();
        assert_eq!((told.count, told.max_ns), (len, *all.last().unwrap()), "case {case}");
        assert_eq!(told.ns, all.iter().fold(0u64, |sum, ns| sum.wrapping_add(*ns)), "case {case}");
        for (told, per_mille) in [(told.p50_ns, 500), (told.p99_ns, 990), (told.p999_ns, 999)] {
            let exact = exact(&all, per_mille);
            assert!(is_near(told, exact), "case {case}: {per_mille} of 1000 is {exact}, and told as {told}");
        }
    }
}

#[test]
fn of_nothing_nothing_is_told() {
    assert_eq!(Durations::default().times(), WaitTimes::default());
}

#[test]
fn no_quantile_is_longer_than_the_longest() {
    let durations = Durations::default();
    durations.note(1 << 40);
    let told = durations.times();
    assert_eq!((told.p50_ns, told.p999_ns), (1 << 40, 1 << 40));
}

#[test]
fn a_histogram_by_powers_of_two_is_exact_at_every_edge() {
    let durations = Durations::default();
    let mut expected = [0; 64];
    for (power, times) in expected.iter_mut().enumerate() {
        let first = 1u64 << power;
        // The first and the last duration of the bucket; the sum must not overflow.
        let ends = if power < 50 { vec![first, first + (first - 1)] } else { vec![first] };
        ends.iter().for_each(|ns| durations.note(*ns));
        *times = ends.len() as u64;
    }
    durations.note(0);
    expected[0] += 1;
    let told = durations.histogram();
    assert_eq!(told.by_power, expected);
    assert_eq!((told.ns, told.by_power.iter().sum::<u64>()), (durations.times().ns, durations.times().count));
}
