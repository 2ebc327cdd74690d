//! Many seeds with all rules, and each rule broken.
//!
//! Owns: the number of seeds, the violation that each broken rule must show.
//! Does not own: a run (`run`).
//! Invariants: a broken rule that no check notices fails its test.

use super::run::run;
use crate::control::CheckedRule;

const SEEDS: u64 = 2_000;
const CONTROL_SEEDS: u64 = 4_000;

#[test]
fn no_seed_breaks_an_invariant() {
    let (mut commits, mut fences, mut seconds) = (0, 0, 0);
    for seed in 0..SEEDS {
        let outcome = run(seed, None);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
        commits += outcome.commits;
        fences += outcome.fences;
        seconds += outcome.end_ns / 1_000_000_000;
    }
    println!("{SEEDS} seeds: {commits} commits answered, {fences} fences, {seconds} s of virtual time");
    assert!(commits > 9 * SEEDS && fences as u64 > 2 * SEEDS, "too little happened: {commits}, {fences}");
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for seed in 0..50 {
        let (first, second) = (run(seed, None), run(seed, None));
        assert_eq!((first.end_ns, first.log_entries), (second.end_ns, second.log_entries), "seed {seed}");
    }
}

/// Breaks a rule until the checks notice, which they must, and with the expected words.
fn is_noticed(rule: CheckedRule, words: &[&str]) {
    for seed in 0..CONTROL_SEEDS {
        let violations = run(seed, Some(rule)).violations;
        if let Some(first) = violations.first() {
            println!("{rule:?}: seed {seed}: {first}");
            assert!(words.iter().any(|words| first.contains(words)), "{rule:?}, seed {seed}: {violations:?}");
            return;
        }
    }
    panic!("no check noticed that {rule:?} was broken");
}

#[test]
fn an_answer_before_durability_is_noticed() {
    is_noticed(CheckedRule::AnswerAfterDurable, &["answered before it was durable"]);
}

#[test]
fn a_name_before_its_segment_is_noticed() {
    is_noticed(CheckedRule::NameAfterPut, &["names the missing", "is missing"]);
}

#[test]
fn an_early_deletion_is_noticed() {
    is_noticed(CheckedRule::DeleteAfterCheckpoints, &["a checkpoint shows it"]);
}

#[test]
fn a_sweep_of_later_epochs_is_noticed() {
    let words = ["was deleted and is named", "names the missing", "a checkpoint shows it", "after its last name"];
    is_noticed(CheckedRule::SweepEarlierEpochs, &words);
}

#[test]
fn the_death_of_a_waiting_segment_is_noticed() {
    let words = ["names the missing", "was deleted and is named", "is missing", "a checkpoint shows it"];
    is_noticed(CheckedRule::WaitingIsAlive, &words);
}

#[test]
fn waiting_extents_read_after_the_scan_are_noticed() {
    let words = ["was deleted and is named", "names the missing", "is missing", "after its last name"];
    is_noticed(CheckedRule::WaitingBeforeScan, &words);
}

#[test]
fn a_segment_that_is_shared_during_a_scan_is_alive() {
    let words = ["was deleted and is named", "names the missing", "is missing", "after its last name"];
    is_noticed(CheckedRule::SharedIsAlive, &words);
}

#[test]
fn an_answer_of_a_fenced_writer_is_noticed() {
    is_noticed(CheckedRule::AnswerUnfenced, &["answered after epoch"]);
}

#[test]
fn a_successor_that_answers_at_once_is_noticed() {
    is_noticed(CheckedRule::SuccessorWaits, &["answered after epoch"]);
}

#[test]
fn a_kept_verifier_is_noticed() {
    is_noticed(CheckedRule::NewVerifier, &["the verifier is the same"]);
}

#[test]
fn a_clean_end_with_unwritten_data_is_noticed() {
    is_noticed(CheckedRule::DrainBeforeClean, &["the verifier is the same"]);
}

#[test]
fn a_forgotten_cut_is_noticed() {
    is_noticed(CheckedRule::ResumeCuts, &["beyond its size", "is no state", "has the wrong body", "wrong bytes"]);
}

#[test]
fn a_deletion_under_a_reader_is_noticed() {
    is_noticed(CheckedRule::DeleteAfterPause, &["after its last name"]);
}

#[test]
fn a_sweep_of_the_own_epoch_is_noticed() {
    is_noticed(CheckedRule::SweepGivenUp, &["was deleted and is named", "names the missing", "is missing"]);
}

#[test]
fn a_rename_before_its_segment_is_noticed() {
    is_noticed(CheckedRule::RenameAfterPut, &["names the missing", "is missing"]);
}

#[test]
fn a_rename_of_overwritten_bytes_is_noticed() {
    is_noticed(CheckedRule::RenameSameOnly, &["is no state", "wrong bytes", "before it was durable", "a batch has"]);
}

#[test]
fn a_cut_without_its_record_is_noticed() {
    is_noticed(CheckedRule::CutRecord, &["beyond its size", "is no state"]);
}

#[test]
fn a_removal_that_forgets_records_is_noticed() {
    is_noticed(CheckedRule::RemoveLast, &["ended before its records"]);
}

#[test]
fn a_batch_without_its_body_is_noticed() {
    is_noticed(CheckedRule::BodyInEachBatch, &["uses", "beyond its size", "is no state"]);
}

#[test]
fn a_scan_beside_a_batch_is_noticed() {
    is_noticed(
        CheckedRule::ReadAgain,
        &["wrong bytes", "is no state", "live bytes are", "uses", "names the missing", "beyond its"],
    );
}
