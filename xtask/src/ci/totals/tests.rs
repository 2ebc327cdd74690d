//! rule: a test run ends by saying whether it passed, with its sums

use std::time::Duration;

use super::Totals;

#[test]
fn the_results_of_all_programs_are_summed() {
    let first = "running 3 tests\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
                 finished in 0.10s\n";
    let second = "test result: FAILED. 10 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
    let both = Totals::of(first).plus(Totals::of(second));
    assert_eq!(both, Totals { programs: 2, passed: 12, failed: 4, ignored: 1 });
    // A program that was killed has no result.
    assert_eq!(
        Totals::of("test a has been running for over 60 seconds\n"),
        Totals { programs: 1, ..Totals::default() }
    );
}

#[test]
fn the_last_line_has_the_sums_and_the_time() {
    let programs = Totals { programs: 92, passed: 3356, failed: 8, ignored: 28 };
    let examples = Totals { programs: 1, passed: 18, failed: 0, ignored: 0 };
    let said = programs.said(examples, 307, Duration::from_secs(815));
    let expected = "3049 tests of 92 programs and 18 examples of the documentation passed, 8 failed; 307 were skipped or \
                    skipped a part, 28 are left to `cargo xtask nightly`. 13 min 35 s";
    assert_eq!(said, expected);
}
