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
    let mut known = Known { delay_ns: 1_000, looks: 0, prompt: false };
    assert!(!known.next_is_prompt());
    assert_eq!(known.late_ns(5_001_000), 5_000_000);
    assert!(!known.next_is_prompt(), "after a late look every look is asked for");
    assert_eq!(known.late_ns(5_001_000), 0);
}

#[test]
fn a_prompt_thread_reads_its_delay_for_one_look_in_sixteen() {
    let mut known = Known { delay_ns: 0, looks: 0, prompt: false };
    assert!(!known.next_is_prompt());
    assert_eq!(known.late_ns(PROMPT_NS), 0, "a prompt look has no delay");
    for _ in 0..3 {
        assert_eq!((0..TAKEN_FOR_PROMPT).filter(|_| known.next_is_prompt()).count(), 15);
        assert!(!known.next_is_prompt());
        assert_eq!(known.late_ns(known.delay_ns + 16 * PROMPT_NS), 0);
    }
    assert_eq!((0..16).filter(|_| known.next_is_prompt()).count(), 15);
    // The delay is of all sixteen looks, and this one may have had all of it.
    assert_eq!(known.late_ns(known.delay_ns + 16 * PROMPT_NS + 1), 16 * PROMPT_NS + 1);
    assert!(!known.next_is_prompt());
}
