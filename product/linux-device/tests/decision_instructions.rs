//! The instructions of a flush-budget decision, snapshot included, and of the budget's calls at the end of a write.

//! rule: a decision of the flush budget reads nothing that devices share, and costs no more than its budget

mod counted;

use counted::{build, can_count, check, instructions};

/// A decision about a payer. Every third decision pauses it.
const DECISION: f64 = 1286.0;
/// The ends of 6,000 writes, for each: the policy learns from it, and gives anew the charge bounds and the bound on
/// writes in flight. While the device is new, each page is asked about, so each end is reported alone: 2,000 of these.
/// Later 16 are reported together.
const COMPLETION: f64 = 1216.0;

/// The clock is stepped, so two counts differ by nothing that was seen.
const SLACK: f64 = 0.02;

#[test]
fn a_decision_takes_the_instructions_it_took() {
    if !can_count() {
        return;
    }
    let program = build("decision_instructions");
    for (what, kind, pages, function, expected, at) in [
        ("a decision", "admit", "800", "*ask_about*", DECISION, 0),
        ("a completion", "complete", "6000", "*Devices::tell_ends*", COMPLETION, 2),
    ] {
        let (counted, told) = instructions(&program, Some(function), &[kind, pages]);
        let times: f64 = told.split(' ').nth(at).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{told}"));
        check(what, counted as f64 / times, expected, SLACK);
    }
}
