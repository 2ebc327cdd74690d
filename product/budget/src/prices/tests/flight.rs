//! The law's vectors for work in flight.

use super::super::*;

#[test]
fn requests_are_those_of_the_law() {
    let bytes = |mib_ns| request_bytes(100 * MILLISECOND, mib_ns, 64 << 10, 1 << 20);
    assert_eq!(bytes(41_943_040), 622_592);
    assert_eq!(bytes(8_738_133), 1 << 20);
    assert_eq!(bytes(10_000_000_000), 64 << 10, "never less than the device likes");
}

#[test]
fn what_is_in_flight_is_a_tenth_and_thirty_milliseconds_at_most() {
    assert_eq!(in_flight_ns(200 * MILLISECOND), 20 * MILLISECOND);
    assert_eq!(in_flight_ns(1000 * MILLISECOND), 30 * MILLISECOND);
    assert_eq!(in_flight_ns(60_000 * MILLISECOND), 30 * MILLISECOND);
}
