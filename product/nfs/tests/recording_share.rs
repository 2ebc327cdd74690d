//! The cost of recording for the recorded calls.
#![allow(clippy::print_stderr, reason = "a test says what it counted")]

#[path = "../../linux/tests/counted/mod.rs"]
#[allow(dead_code, reason = "what other tests count")]
mod counted;

use counted::{build, can_count, instructions};

const BATCHES: u64 = 200;
/// The least of so many counts is compared. A count moves by 1 % with the place of the stack, since copies of bytes take other ways.
/// So each has an argument of another length, and another place.
const COUNTS: usize = 6;
/// How much longer an argument is than the one before.
const STEP: usize = 16;
/// Pairs of the number of calls that a server finds at a time, and the largest share of recording in a call's own cost.
/// Measured: for one call 152 of 2,954 instructions (5.1 %), since it bears the clock and the lock alone; for each of 64
/// calls 58 of 2,272 (2.6 %). The share of a READ's whole cost is a third of that: the kernel takes two thirds of the
/// server's time, to move the data through a socket (notebook/nfs.md).
const SHARES_MAX: [(u32, f64); 2] = [(1, 0.056), (64, 0.03)];

#[test]
fn recording_takes_little_of_a_cached_read() {
    if !can_count() {
        return;
    }
    let program = build("read_instructions");
    for (together, share_max) in SHARES_MAX {
        let of = |kind: &str| {
            let count = |at: usize| {
                let arguments = [kind, &together.to_string(), &format!("{BATCHES:0width$}", width = at * STEP)];
                instructions(&program, Some("read_instructions::batches"), &arguments).0
            };
            let least = (0..COUNTS).map(count).min().unwrap();
            least as f64 / BATCHES as f64 / f64::from(together)
        };
        let (plain, recorded) = (of("plain"), of("recorded"));
        let share = recorded / plain - 1.0;
        eprintln!(
            "{together} together: {plain:.1} instructions a cached READ, {recorded:.1} recorded, {:.2} %",
            share * 100.0
        );
        assert!(
            share <= share_max,
            "{together} together: {plain:.1} instructions a READ, {recorded:.1} recorded, more than {share_max} of it",
        );
    }
}
