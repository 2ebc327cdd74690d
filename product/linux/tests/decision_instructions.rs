//! The instructions of a flush-budget decision, snapshot included, and of the budget's calls at the end of a write.

//! rule: a decision of the flush budget reads nothing that devices share, and costs no more than its budget

mod counted;

use counted::{build, can_count, check, instructions};

/// A decision about a payer. Every third decision pauses it.
const DECISION: f64 = 1295.0;
/// The end of a write: the policy learns from it, and sets anew the charge and the bound on writes in flight. 2,302 in
/// six runs, and 2,357 once: a run delay, which load brings, has the policy learn from the single completion. 2,140 before an answer
/// held for a moment; on a fast disk most ends do without the second half.
const COMPLETION: f64 = 2302.0;

/// The law changes more often than the path of a hit.
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
