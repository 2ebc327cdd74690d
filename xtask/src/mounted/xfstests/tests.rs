use super::*;

const LOG: &str = "Ran: generic/001\nFailures: generic/001\n\nSat Nov 25\nRan: generic/001 generic/002 generic/003\n\
                   Not run: generic/004 generic/005\nFailures: generic/002 generic/003\nFailed 2 of 3 tests\n";
const KNOWN: &str = "generic/001 an old reason\ngeneric/002 a good reason\n";

#[test]
fn the_last_run_counts_and_only_unknown_failures_are_wrong() {
    let told = judged(LOG, KNOWN).unwrap();
    assert_eq!(told.unexpected, "generic/003");
    assert_eq!(
        told.text,
        "3 tests ran, 2 do not apply, 2 failed\npasses: generic/001, though: an old reason\n\
         fails as expected: generic/002: a good reason"
    );
    assert!(judged("no log", KNOWN).is_err());
}
