use super::*;

#[test]
fn only_time_between_two_looks_that_came_in_time_counts() {
    let at = |ms: u64| Nanos(ms * Nanos::MILLISECOND);
    let mut watch = HangWatch::begins(at(1000));
    let mut looks = |ms, since: Option<u64>| watch.look(at(ms), since.map(at)) / Nanos::MILLISECOND;
    assert_eq!(looks(1500, Some(1400)), 100, "since it became silent");
    assert_eq!(looks(2000, Some(1400)), 600);
    assert_eq!(looks(3_602_000, Some(1400)), 600, "an hour that nobody watched");
    assert_eq!(looks(3_602_500, Some(1400)), 1100);
    assert_eq!(looks(3_603_000, Some(3_602_600)), 400, "something ended");
    assert_eq!(looks(3_603_500, None), 0);
    assert_eq!(looks(3_604_000, Some(3_603_500)), 500);
}
