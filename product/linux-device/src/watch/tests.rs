//! The answers during a check, and without one.

use super::*;

#[test]
fn the_second_field_is_the_delay() {
    assert_eq!(second_field(b"123 4567 89\n"), Some(4567));
    assert_eq!(second_field(b"123\n"), None);
    assert_eq!(second_field(b""), None);
}

#[test]
fn all_completions_of_a_look_are_told_the_same_and_others_nothing() {
    assert_eq!(unwatched_ns(), 0, "nobody looked");
    {
        let _telling = ReportedLook::after(5_000);
        let told = unwatched_ns();
        assert!(told >= 5_000, "{told}");
        assert_eq!(unwatched_ns(), told);
    }
    assert_eq!(unwatched_ns(), 0, "they have been told");
}

#[test]
fn looks_between_two_readings_share_their_delay() {
    let at = |ms: u64| Nanos(Nanos::SECOND + ms * Nanos::MILLISECOND);
    let mut delays = RunDelays { total_ns: 0, read: Nanos(0), looks: 0, mean_ns: 0 };
    assert_eq!(delays.of_look(at(0), || 700), 700, "all that a new thread has waited");
    assert_eq!(delays.of_look(at(10), || 900), 200, "a look as late as a reading has its own delay");
    for ms in [11, 12, 19] {
        assert_eq!(delays.of_look(at(ms), || panic!("read again after {ms} ms")), 200, "as the last ones");
    }
    assert_eq!(delays.of_look(at(21), || 1_300), 100, "four looks waited 400 ns");
    assert_eq!(delays.of_look(at(40), || 1_300), 0, "the delay is told once");
}
