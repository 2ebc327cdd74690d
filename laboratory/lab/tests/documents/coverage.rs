//! The table of the five threads' items says how many of them are there.
//!
//! Owns: the count.
//! Does not own: the items and their evidence (`notebook/threads.md`).
//! Invariants: each item is Y, P or N.

use std::fs;
use std::path::Path;

#[test]
fn the_table_of_items_has_as_many_of_each_kind_as_its_sentence_says() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../notebook/threads.md");
    let page = fs::read_to_string(place).unwrap();
    let (_, table) = page.split_once("## Coverage").unwrap();
    let is_item = |line: &&str| line.starts_with("| s") || line.starts_with("| later");
    let kinds: Vec<&str> = table.lines().filter(is_item).map(|line| line.split(" | ").nth(1).unwrap()).collect();
    let of = |kind: &str| kinds.iter().filter(|own| **own == kind).count();
    let [there, partly, missing] = ["Y", "P", "N"].map(of);
    assert_eq!(there + partly + missing, kinds.len(), "{kinds:?}");
    let says = format!("Of {} items {there} are Y, {partly} P and {missing} N.", kinds.len());
    assert!(table.contains(&says), "the table gives: {says}");
}
