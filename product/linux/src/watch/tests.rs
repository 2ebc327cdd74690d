//! The answers during a look, and without one.

use super::*;

#[test]
fn the_second_number_is_the_delay() {
    assert_eq!(second_number(b"123 4567 89\n"), Some(4567));
    assert_eq!(second_number(b"123\n"), None);
    assert_eq!(second_number(b""), None);
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
fn a_delay_is_told_once() {
    let before = run_delay_ns();
    drop((ReportedLook::after(0), unwatched_ns()));
    {
        let _telling = ReportedLook::after(0);
        // It is more only if the test itself waits for a CPU meanwhile.
        assert!(unwatched_ns() <= run_delay_ns().saturating_sub(before));
    }
    assert!(DELAY_NS.get() >= before);
}
