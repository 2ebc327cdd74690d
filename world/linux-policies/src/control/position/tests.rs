use super::*;

const LIMITS: Limits = Limits { dirty: 200_000, background: 100_000 };

fn alone(dirty: u64) -> Position {
    Position {
        limits: LIMITS,
        hard_limit: 200_000,
        dirty,
        share: 200_000,
        share_background: 100_000,
        device_dirty: dirty,
        bandwidth: 25_600,
        strict: false,
        never_zero: NeverZero::LastBit,
    }
}

#[test]
fn the_global_cubic_by_table() {
    let table = [
        (150_000, 2045),
        (156_250, 1453),
        (162_500, 1151),
        (168_750, 1039),
        (175_000, 1024),
        (181_250, 1008),
        (187_500, 896),
        (193_750, 594),
        (196_875, 340),
        (199_999, 2),
        (200_000, 2),
    ];
    for (dirty, factor) in table {
        assert_eq!(cubic(175_000, dirty, 200_000, NeverZero::LastBit), factor, "{dirty}");
    }
    assert_eq!(alone(200_000).factor(), 0, "the guard comes before the polynomial's 2");
}

#[test]
fn one_device_that_owns_everything_by_table() {
    for (dirty, factor) in [(150_000, 2294), (162_500, 1221), (175_000, 1023), (187_500, 841), (193_750, 539)] {
        assert_eq!(alone(dirty).factor(), factor, "{dirty}");
    }
}

/// Decisions of a running kernel (Linux 6.18, 250 ticks a second, one writer on a disk of 25 MB/s and others on
/// another), from its tracepoint `balance_dirty_pages`. Each gives the rate limit times the factor. Limits and share
/// were chosen to give the traced setpoints.
#[test]
fn a_running_kernel_by_table() {
    // Limit, background, hard limit, dirty, share, on the device, bandwidth, rate limit, setpoint of the device;
    // rate.
    let table = [
        ([1_136_019, 567_318, 1_147_194, 899_348, 1_019_203, 899_342, 5476, 6004, 896_645], 7704),
        ([1_113_401, 556_023, 1_124_866, 880_065, 818_452, 880_052, 5962, 6004, 720_220], 2896),
        ([1_151_681, 575_139, 1_163_900, 864_286, 509_624, 864_240, 2969, 6004, 448_531], 2972),
        ([1_129_644, 564_134, 1_131_347, 856_415, 691_376, 855_824, 6015, 6004, 605_354], 2714),
        ([1_094_680, 546_674, 1_100_613, 892_596, 815_598, 892_160, 6094, 25_600, 715_719], 7900),
        ([1_075_132, 536_912, 1_127_932, 825_246, 915_723, 780_496, 5808, 25_600, 823_588], 53_550),
        ([1_081_794, 540_239, 1_084_468, 873_627, 770_343, 873_492, 6073, 25_600, 674_869], 7400),
        ([1_097_347, 548_006, 1_101_986, 888_472, 782_187, 888_320, 6090, 25_600, 685_933], 7325),
    ];
    for (numbers, rate) in table {
        let [limit, background, hard_limit, dirty, share, device_dirty, bandwidth, rate_limit, setpoint] = numbers;
        let limits = Limits { dirty: limit, background };
        let position = Position { limits, hard_limit, dirty, share, device_dirty, bandwidth, ..alone(0) };
        assert_eq!((position.setpoint() * ((share << 16) / (limit | 1))) >> 16, setpoint);
        assert_eq!((rate_limit * position.factor()) >> 10, rate, "{numbers:?}");
    }
}

#[test]
fn half_a_share_by_table() {
    let table = [
        (5000, 12_624),
        (20_000, 3692),
        (49_999, 1275),
        (60_000, 1208),
        (87_500, 1023),
        (120_000, 805),
        (150_000, 604),
        (200_000, 268),
    ];
    for (device_dirty, factor) in table {
        let position = Position { share: 100_000, device_dirty, ..alone(175_000) };
        assert_eq!(position.factor(), factor, "{device_dirty}");
    }
}

#[test]
fn a_device_without_a_share_gets_an_eighth_of_what_is_left() {
    for (device_dirty, factor) in [(100, 11_624), (1000, 2039), (2000, 1143), (5000, 653)] {
        let position = Position { share: 0, device_dirty, ..alone(175_000) };
        assert_eq!(position.factor(), factor, "{device_dirty}");
    }
}

#[test]
fn a_strict_limit_by_table() {
    let table = [(8, 2048), (1000, 2039), (1250, 1150), (1500, 1024), (1750, 897), (1900, 504), (1999, 14), (2000, 0)];
    for (device_dirty, factor) in table {
        let position = Position { share: 2000, share_background: 1000, device_dirty, strict: true, ..alone(0) };
        assert_eq!(position.factor(), factor, "{device_dirty}");
    }
    let few = Position { share: 2000, share_background: 1000, device_dirty: 7, strict: true, ..alone(190_000) };
    // Twice the global factor: 1024 + cube of -614, which is -221.
    assert_eq!(few.factor(), 1606);
    let fewer = Position { dirty: 150_000, ..few };
    assert_eq!(fewer.factor(), 2048, "twice 2045 is capped");
    let none = Position { share: 0, share_background: 0, device_dirty: 100, strict: true, ..alone(0) };
    assert_eq!(none.factor(), 0);
}

/// Limits with an odd distance, and small, so that a divisor larger by 1 shows.
#[test]
fn linux_3_6_and_6_1_divide_by_another_number_by_table() {
    let table = [(1600, 1478, 1479), (1700, 1095, 1096), (1750, 1022, 1024), (1900, 657, 659), (1950, 385, 386)];
    for (dirty, v3_6, v6_1) in table {
        let limits = Limits { dirty: 2001, background: 1001 };
        let of =
            |never_zero| Position { limits, hard_limit: 2001, share: 2001, bandwidth: 100, never_zero, ..alone(dirty) };
        assert_eq!((of(NeverZero::PlusOne).factor(), of(NeverZero::LastBit).factor()), (v3_6, v6_1), "{dirty}");
    }
}
