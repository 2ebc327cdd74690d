use super::*;

const UPDATE_TICKS: u64 = 200;

#[test]
fn it_falls_slowly_by_table() {
    let mut limit = HardLimit { limit: 200_000, updated: 0 };
    for (step, expected) in [(1, 197_500), (2, 195_079), (3, 192_733), (4, 190_461), (5, 188_260)] {
        limit.update(100_000, 120_000, step * UPDATE_TICKS, UPDATE_TICKS);
        assert_eq!(limit.pages(100_000), expected);
        limit.update(100_000, 120_000, step * UPDATE_TICKS + 1, UPDATE_TICKS);
        assert_eq!(limit.pages(100_000), expected, "once in 200 ms");
    }
    limit.update(300_000, 0, 10 * UPDATE_TICKS, UPDATE_TICKS);
    assert_eq!(limit.pages(100_000), 300_000, "and rises at once");
}

#[test]
fn a_small_gap_never_closes() {
    let mut limit = HardLimit { limit: 200_000, updated: 0 };
    for step in 1..100 {
        limit.update(199_980, 0, step * UPDATE_TICKS, UPDATE_TICKS);
    }
    assert_eq!(limit.pages(0), 200_000);
}
