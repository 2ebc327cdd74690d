//! The document has the dependencies of the build.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores.md");

#[test]
fn the_document_has_the_number_of_dependencies_and_their_licences() {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let table = table();
    assert!(text.contains(&table), "docs/stores.md should have this table:\n{table}");
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

/// The licences of all crates of others that a build on this machine compiles, and how often each occurs.
fn licences() -> BTreeMap<String, usize> {
    let metadata = metadata();
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["id"].as_str().unwrap(), node))
        .collect();
    let mut reached = BTreeSet::new();
    let mut open = vec![metadata["resolve"]["root"].as_str().unwrap()];
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"].as_str() != Some("dev")) {
                open.push(dependency["pkg"].as_str().unwrap());
            }
        }
    }
    let mut licences = BTreeMap::new();
    for package in reached.into_iter().map(|id| packages[id]).filter(|package| !package["source"].is_null()) {
        *licences.entry(normal(package["license"].as_str().unwrap_or("none named"))).or_default() += 1;
    }
    licences
}

fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let host = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version=1", "--locked", "--offline", "--features=stores"]);
    let output = command.args(["--filter-platform", host, "--manifest-path", manifest]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
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
