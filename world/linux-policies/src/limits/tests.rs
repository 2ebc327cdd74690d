use afflux_engine::Nanos;
use afflux_engine::policy::{DeviceCounts, SharedCounts};

use super::*;

#[test]
fn linux_6_1_by_table() {
    let ratios = KnobValues::default();
    let cases = [
        (1_000_000, ratios, 199_951, 99_853),
        (786_432, ratios, 157_248, 78_528),
        (4_194_304, ratios, 838_656, 418_816),
        (1, ratios, 0, 0),
        (1_000_000, KnobValues { dirty_bytes: 104_857_601, background_bytes: 26_214_400, ..ratios }, 25_601, 6400),
        (1_000_000, KnobValues { dirty_bytes: 26_214_400, background_bytes: 104_857_600, ..ratios }, 6400, 3200),
        (1_000_000, KnobValues { dirty_ratio: 10, background_ratio: 10, ..ratios }, 99_853, 49_926),
    ];
    for (avail, knobs, dirty, background) in cases {
        assert_eq!(limits_6_1(avail, &knobs), Limits { dirty, background }, "{avail} {knobs:?}");
    }
}

#[test]
fn linux_3_6_by_table() {
    let knobs = KnobValues { dirty_ratio: 1, background_ratio: 2, ..KnobValues::default() };
    assert_eq!(limits_2012(1_000_000, &knobs), Limits { dirty: 10_000, background: 5000 });
    assert_eq!(limits_2012(1_000_000, &KnobValues::default()), Limits { dirty: 200_000, background: 100_000 });
}

#[test]
fn dirtyable_memory() {
    let mut view = View::new(Nanos(0), DeviceCounts::default());
    view.shared = SharedCounts { free: 1000, reserve: 300, cached: 900, ..SharedCounts::default() };
    assert_eq!(dirtyable_modern(&view), 1601);
    view.shared.free = 100;
    assert_eq!(dirtyable_modern(&view), 901, "the reserve may be more than what is free");
}
