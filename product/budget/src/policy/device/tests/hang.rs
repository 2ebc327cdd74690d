use super::super::*;

#[test]
fn a_device_has_eight_times_what_is_in_flight_between_two_and_thirty_seconds() {
    for (in_flight_ms, after_ms) in
        [(0, 2000), (250, 2000), (251, 2008), (1000, 8000), (3750, 30_000), (60_000, 30_000)]
    {
        assert_eq!(stalled_after_ns(in_flight_ms * MILLISECOND), after_ms * MILLISECOND, "{in_flight_ms} ms");
    }
    assert_eq!(stalled_after_ns(u64::MAX), HANG_NS_MAX);
}
