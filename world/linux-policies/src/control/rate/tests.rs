use super::*;
use crate::control::position::{NeverZero, Position};
use crate::limits::Limits;

const SETPOINT: u64 = 175_000;

fn update(limit: u64, balanced: u64, factor: u64, dirtied: u64, dirty: u64) -> (u64, u64) {
    let mut rate = RateLimit { limit, balanced };
    // These pages were dirtied in 200 ms.
    rate.update(&Observed { factor, dirty_rate: dirtied * 5, bandwidth: 25_600, dirty, setpoint: SETPOINT });
    (rate.limit, rate.balanced)
}

#[test]
fn updates_by_table() {
    let (at, above, below) = (SETPOINT, 180_000, 160_000);
    assert_eq!(update(25_600, 25_600, 1024, 10_240, at), (25_600, 12_800));
    assert_eq!(update(25_600, 12_800, 512, 10_240, above), (24_800, 6400));
    assert_eq!(update(6400, 12_800, 1536, 2560, below), (6801, 19_200));
    assert_eq!(update(1, 25_600, 2045, 0, below).0, 2);
}

/// The resting point of the loop: the cubic alone, ideal writers, 200 ms a step, from 150,001 dirty pages.
fn settle(writers: u64) -> (u64, u64, u64) {
    let mut rate = RateLimit::default();
    let (mut dirty, bandwidth) = (150_001_u64, 25_600_u64);
    let mut factor = 0;
    for _ in 0..20_000 {
        let position = Position {
            limits: Limits { dirty: 200_000, background: 100_000 },
            hard_limit: 200_000,
            dirty,
            // A strict share that is far from used up does not change the factor of all devices.
            share: 1 << 30,
            share_background: 0,
            device_dirty: 8,
            bandwidth,
            strict: true,
            never_zero: NeverZero::LastBit,
        };
        factor = position.factor();
        let dirtied = writers * ((rate.limit * factor) >> 10) / 5;
        let observed = Observed { factor, dirty_rate: dirtied * 5, bandwidth, dirty, setpoint: position.setpoint() };
        rate.update(&observed);
        dirty = (dirty + dirtied).saturating_sub(bandwidth / 5);
    }
    (rate.limit, dirty, factor)
}

#[test]
fn the_closed_loop_rests_where_the_facts_say() {
    let (limit, dirty, factor) = settle(1);
    assert_eq!((limit, factor), (25_600, 1024));
    assert!(dirty.abs_diff(172_486) < 1000, "{dirty}");
    let (limit, dirty, factor) = settle(4);
    assert!(limit.abs_diff(6775) < 70 && dirty.abs_diff(184_519) < 1000 && factor.abs_diff(967) < 10);
    let (limit, dirty, factor) = settle(10);
    assert!(limit.abs_diff(2730) < 70 && dirty.abs_diff(184_889) < 1500 && factor.abs_diff(960) < 15);
}
