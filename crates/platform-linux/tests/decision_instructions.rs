//! The instructions of a decision of the flush budget, snapshot included, and of what it is asked when a write ends.

mod counted;

use counted::{build, can_count, check, instructions};

/// A decision about a payer. Every third pauses it.
const DECISION: f64 = 1295.0;
/// A write has ended: the policy learns from it, and says anew what may be charged and be in flight.
const COMPLETION: f64 = 2023.0;

/// The law is refined more often than the way of a hit.
const SLACK: f64 = 0.1;

#[test]
fn a_decision_takes_the_instructions_it_took() {
    if !can_count() {
        return;
    }
    let program = build("decision_instructions");
    for (what, kind, pages, function, expected, at) in [
        ("a decision", "admit", "800", "*ask_about*", DECISION, 0),
        ("a completion", "complete", "2000", "*Devices::write_ended*", COMPLETION, 2),
    ] {
        let (counted, told) = instructions(&program, Some(function), &[kind, pages]);
        let times: f64 = told.split(' ').nth(at).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{told}"));
        check(what, counted as f64 / times, expected, SLACK);
    }
}
