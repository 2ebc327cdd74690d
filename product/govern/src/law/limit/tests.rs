use super::{LimitChoice, LimitTarget, MachineLimits, choose};

const MB: u64 = 1_000_000;
/// As on a machine with 24 GiB.
const MACHINE: MachineLimits = MachineLimits { dirty_bytes: 4_800 * MB, background_bytes: 2_400 * MB };

fn wanted(mb_per_s: u64, budget_ms: u64) -> LimitTarget {
    let bytes_per_second = mb_per_s * MB;
    LimitTarget { budget_ns: budget_ms * MB, budget_bytes: bytes_per_second / 1000 * budget_ms, bytes_per_second }
}

fn bytes(wanted: &LimitTarget, in_force: Option<u32>) -> Option<u64> {
    match choose(wanted, MACHINE, in_force) {
        LimitChoice::Limit { bytes, ratio_ppm } => {
            assert!(bytes <= MACHINE.dirty_bytes && ratio_ppm <= 1_000_000);
            Some(bytes)
        }
        LimitChoice::FastEnough => None,
    }
}

/// Within a thousandth: the kernel counts in millionths of its own limit.
fn about(bytes: Option<u64>, expected: u64) {
    let bytes = bytes.expect("a limit");
    assert!(bytes.abs_diff(expected) <= 4_800, "{bytes} for {expected}");
}

#[test]
fn writers_are_held_up_once_a_whole_budget_is_dirty() {
    // The kernel begins to slow writers down at three quarters of the limit.
    for (rate, budget_ms) in [(25, 1000), (5, 2000), (150, 500), (25, 200)] {
        let wanted = wanted(rate, budget_ms);
        about(bytes(&wanted, None), wanted.budget_bytes / 3 * 4);
    }
    let low = MachineLimits { background_bytes: 0, ..MACHINE };
    let LimitChoice::Limit { bytes, .. } = choose(&wanted(25, 1000), low, None) else { panic!("a limit") };
    assert!(bytes.abs_diff(50 * MB) < 4_800, "with another background line it is another part: {bytes}");
    let odd = MachineLimits { background_bytes: 2 * MACHINE.dirty_bytes, ..MACHINE };
    assert_eq!(choose(&wanted(25, 1000), odd, None), choose(&wanted(25, 1000), MACHINE, None));
}

#[test]
fn no_budget_costs_throughput() {
    about(bytes(&wanted(25, 10), None), 5 * MB / 3 * 4);
    about(bytes(&wanted(1, 10), None), (4 << 20) / 3 * 4);
    about(bytes(&LimitTarget { budget_ns: 1, budget_bytes: 0, bytes_per_second: 0 }, None), (4 << 20) / 3 * 4);
}

#[test]
fn no_limit_is_above_the_kernels_own_and_what_is_fast_has_none() {
    assert_eq!(bytes(&wanted(4000, 1000), None), None);
    assert_eq!(bytes(&wanted(3300, 1000), None), None, "nearly as much as the kernel lets be dirty anyway");
    assert!(bytes(&wanted(3000, 1000), None).is_some());
    assert!(bytes(&wanted(3300, 1000), Some(900_000)).is_some(), "what is held stays held until there is no doubt");
    assert_eq!(bytes(&wanted(3700, 1000), Some(900_000)), None);
    let endless = LimitTarget { budget_ns: u64::MAX, budget_bytes: u64::MAX, bytes_per_second: u64::MAX };
    assert_eq!(bytes(&endless, None), None);
    let nothing = MachineLimits { dirty_bytes: 0, background_bytes: 0 };
    assert_eq!(choose(&wanted(25, 1000), nothing, None), LimitChoice::FastEnough);
}

#[test]
fn a_limit_moves_only_when_it_is_off_by_more_than_an_eighth() {
    let LimitChoice::Limit { ratio_ppm, .. } = choose(&wanted(25, 1000), MACHINE, None) else { panic!("a limit") };
    for (rate, moves) in [(25, false), (27, false), (23, false), (29, true), (20, true), (5, true)] {
        let LimitChoice::Limit { ratio_ppm: now, .. } = choose(&wanted(rate, 1000), MACHINE, Some(ratio_ppm)) else {
            panic!("a limit")
        };
        assert_eq!(now != ratio_ppm, moves, "{rate} MB/s");
    }
    // The limit is a fraction: with less free memory the same limit is another fraction.
    let half = MachineLimits { dirty_bytes: MACHINE.dirty_bytes / 2, background_bytes: MACHINE.background_bytes / 2 };
    let LimitChoice::Limit { ratio_ppm: now, bytes } = choose(&wanted(25, 1000), half, Some(ratio_ppm)) else {
        panic!("a limit")
    };
    assert!(now.abs_diff(2 * ratio_ppm) <= 1 && bytes.abs_diff(100 * MB / 3) < 4_800);
}
