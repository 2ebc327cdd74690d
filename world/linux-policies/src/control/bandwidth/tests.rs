use super::*;

fn steps(rate: u64, count: usize) -> Vec<(u64, u64)> {
    let mut bandwidth = Bandwidth::default();
    let step = |_| {
        bandwidth.update(1000, 200, rate / 5);
        (bandwidth.now, bandwidth.average)
    };
    (0..count).map(step).collect()
}

#[test]
fn a_slow_device_by_table() {
    let after = steps(6400, 100);
    let first =
        [(24_662, 25_600), (23_770, 25_483), (22_921, 25_269), (22_114, 24_976), (21_346, 24_619), (20_616, 24_210)];
    assert_eq!(after[..6], first);
    let later = [(10, 18_034, 22_261), (20, 13_449, 17_123), (50, 7960, 8956), (100, 6519, 6605)];
    for (count, now, average) in later {
        assert_eq!(after[count - 1], (now, average), "after {count}");
    }
}

#[test]
fn a_fast_device_by_table() {
    let expected = [(27_475, 25_600), (29_258, 25_834), (30_954, 26_262), (32_567, 26_848), (34_101, 27_562)];
    assert_eq!(steps(64_000, 5), expected);
}

#[test]
fn after_a_long_time_only_the_last_counts() {
    let mut bandwidth = Bandwidth::default();
    bandwidth.update(1000, 5000, 20_000);
    assert_eq!(bandwidth, Bandwidth { now: 4000, average: 4000 });
    bandwidth.update(1000, 5000, 0);
    assert_eq!(bandwidth, Bandwidth { now: 0, average: 1 });
}
