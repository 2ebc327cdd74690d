//! The document has the dependencies of the build.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/use/stores.md");

#[test]
fn the_document_has_the_number_of_dependencies_and_their_licences() {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let table = table();
    assert!(text.contains(&table), "docs/use/stores.md should have this table:\n{table}");
}

fn table() -> String {
    let licences = licences();
    let count: usize = licences.values().sum();
    let mut rows: Vec<_> = licences.into_iter().collect();
    rows.sort_by_key(|(licence, count)| (std::cmp::Reverse(*count), licence.clone()));
    let mut table = format!("{count} crates:\n\n| licence | crates |\n|-|-|\n");
    for (licence, count) in rows {
        table.push_str(&format!("| {licence} | {count} |\n"));
    }
    table
}

/// The licences of all crates of others that a build on this machine compiles, and how often each occurs. Features that
/// only other crates of the workspace want do not count.
fn licences() -> BTreeMap<String, usize> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--features=stores", "--edges=normal,build", "--prefix=none"]);
    let output = command.args(["--format={p}|{l}|", "--manifest-path", manifest]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // A crate that appears again ends with a mark behind the last bar. Ours are named with their paths.
    let crates: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('|'))
        .filter(|(package, _)| !package.contains("(/"))
        .filter_map(|(package, rest)| Some((package, rest.split_once('|')?.0)))
        .collect();
    let mut licences = BTreeMap::new();
    for (_, licence) in crates {
        *licences.entry(normal(if licence.is_empty() { "none named" } else { licence })).or_default() += 1;
    }
    licences
}

/// Alternatives in one order.
fn normal(licence: &str) -> String {
    let mut parts: Vec<&str> = licence.split(" OR ").flat_map(|part| part.split('/')).map(str::trim).collect();
    if licence.contains('(') {
        return licence.to_owned();
    }
    parts.sort_unstable();
    parts.join(" or ")
}
