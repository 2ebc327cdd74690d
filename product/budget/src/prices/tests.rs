//! The law's vectors for prices, and properties of any prices.

mod flight;
mod wide;

use super::*;

fn prices(run_ns: u64, mib_ns: u64) -> DirectionPrices {
    DirectionPrices { run_ns, mib_ns }
}

#[test]
fn costs_are_those_of_the_law() {
    assert_eq!(prices(100_000, 41_943_040).cost_ns(0, 65_536), 2_621_440);
    assert_eq!(prices(6_000_000, 8_738_133).cost_ns(1, 4096), 6_034_133);
    assert_eq!(prices(200_000_000, 52_428_800).cost_ns(100, 1 << 20), 20_052_428_800);
    assert_eq!(DirectionPrices { run_ns: u64::MAX, mib_ns: u64::MAX }.cost_ns(u64::MAX, u64::MAX), u64::MAX);
}

#[test]
fn ratios_are_bounded() {
    // The model's cost is 50 ms.
    let model = prices(1_000, 41_943_040);
    for (measured_ms, ratio) in [(52, 1064), (1100, 16_384), (1, 64)] {
        assert_eq!(model.ratio(0, 1_250_000, measured_ms * 1_000_000), ratio);
    }
    assert_eq!(model.ratio(0, 0, 1_000_000), ONE, "nothing was modelled");
}

#[track_caller]
fn learns(
    before: DirectionPrices,
    runs: u64,
    bytes: u64,
    measured_ns: u64,
    ratio: u64,
    damping: u64,
    after: DirectionPrices,
) {
    let mut learned = before;
    assert_eq!(learned.ratio(runs, bytes, measured_ns), ratio);
    learned.learn(runs, bytes, ratio, damping);
    assert_eq!(learned, after);
}

#[test]
fn a_window_moves_the_price_that_is_to_blame() {
    let (prior, by) = (DirectionPrices::default(), DirectionPrices::window_damping);
    learns(prior, 0, 1_250_000, 62_500_000, 1280, by(1280), prices(10_000_000, 44_564_480));
    learns(prior, 8, 32_768, 50_000_000, 629, by(629), prices(8_040_216, 41_808_365));
    let usb = prices(6_000_000, 8_738_133);
    learns(usb, 2, 2_097_152, 44_000_000, 1528, by(1528), prices(6_581_063, 9_970_551));
}

#[test]
fn a_tenfold_change_takes_few_windows() {
    for (ratio, mib_ns) in [(10_240, 38_500_000), (205, 4_200_684)] {
        let mut learned = prices(1_000, 7_000_000);
        learned.learn(0, 10_485_760, ratio, DirectionPrices::window_damping(ratio));
        assert_eq!(learned.mib_ns, mib_ns);
    }
}

#[test]
fn a_completion_moves_prices_by_little() {
    let before = prices(2_000_000, 10_000_000);
    learns(before, 1, 655_360, 12_000_000, 1489, 64, prices(2_005_437, 10_084_958));
    learns(before, 0, 1 << 20, 9_000_000, 921, 64, prices(2_000_000, 9_984_284));
}

#[test]
fn prices_keep_their_bounds_whatever_is_measured() {
    let mut learned = DirectionPrices::default();
    for round in 0..200_u64 {
        let ratio = if round % 3 == 0 { 64 } else { 16_384 };
        learned.learn(1 << (round % 60), 1 << ((round * 7) % 60), ratio, 1);
        assert!((RUN_NS.0..=RUN_NS.1).contains(&learned.run_ns), "{learned:?}");
        assert!((MIB_NS.0..=MIB_NS.1).contains(&learned.mib_ns), "{learned:?}");
    }
}

#[test]
fn streams_never_touch_the_price_of_a_run() {
    let mut learned = DirectionPrices::default();
    (0..100).for_each(|_| learned.learn(0, 1 << 20, 4096, 2));
    assert_eq!(learned.run_ns, PRIOR.run_ns);
}
