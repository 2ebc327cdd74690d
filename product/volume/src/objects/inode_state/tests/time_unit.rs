use super::super::*;

fn time(seconds: i64, nanos: u32) -> Timestamp {
    Timestamp { seconds, nanos }
}

#[test]
fn a_time_is_cut_to_the_unit_before_and_after_1970() {
    let cases = [
        (time(7, 123_456_789), 1, time(7, 123_456_789)),
        (time(7, 123_456_789), 100, time(7, 123_456_700)),
        (time(7, 123_456_789), 10_000_000, time(7, 120_000_000)),
        (time(7, 123_456_789), 1_000_000_000, time(7, 0)),
        (time(7, 123_456_789), 2_000_000_000, time(6, 0)),
        (time(-7, 123_456_789), 2_000_000_000, time(-8, 0)),
        (time(-8, 0), 2_000_000_000, time(-8, 0)),
    ];
    for (given, unit, cut) in cases {
        assert_eq!(given.cut_to(unit), cut, "{unit}");
        assert_eq!(cut.cut_to(unit), cut);
    }
}

#[test]
fn the_unit_is_learnt_from_a_time_that_was_cut() {
    let given = time(1_700_000_001, 123_456_789);
    for wanted in UNITS_NS {
        let unit = FileTimeUnit::default();
        unit.learn(given, given);
        assert_eq!(unit.ns(), 1, "nothing was cut");
        unit.learn(given, given.cut_to(wanted));
        assert_eq!(unit.ns(), wanted);
    }
    let unit = FileTimeUnit::default();
    unit.note(100);
    // The host cannot store this year, or its user does not own the file.
    unit.learn(time(9_000_000_000, 5), time((1 << 31) - 1, 0));
    unit.learn(given, time(1_600_000_000, 0));
    assert_eq!(unit.ns(), 100);
}
