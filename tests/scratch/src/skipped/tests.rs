#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;
use std::{env, fs};

use super::{SKIPPED, append, line};
use crate::Scratch;

#[test]
fn a_reason_is_one_line_and_lines_are_kept_in_their_order() {
    let scratch = Scratch::new(&env::temp_dir(), "skipped").unwrap();
    let file = scratch.path().join("list");
    append(&file, &line("a", "t", "no disk:\n  none\there")).unwrap();
    append(&file, &line("b", "u", "not root")).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\tt\tno disk: none here\nb\tu\tnot root\n");
}

/// Run by the test below in a process of its own.
#[test]
#[ignore = "skips itself"]
fn one_that_is_skipped() {
    crate::skipped!("there is no {}", "moon");
}

#[test]
fn a_skipped_test_passes_and_is_in_the_list_by_its_name() {
    let scratch = Scratch::new(&env::temp_dir(), "skipped").unwrap();
    let file = scratch.path().join("list");
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "skipped::tests::one_that_is_skipped", "--ignored"]);
    let output = child.env(SKIPPED, &file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = "afflux-scratch\tskipped::tests::one_that_is_skipped\tthere is no moon\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
}
