//! The permitted imports between crates.
//!
//! Owns: the meaning of the table (`xtask/imports.txt`).
//! Does not own: paths inside a crate (`sources`).
//! Invariants: a crate without a row is a violation, so the table is complete; so is a row without a crate, so it is
//! not stale.

use anyhow::{Context, Result};
use serde_json::Value;

use super::violation::Violation;
use crate::list;

const RULE: &str = "imports";

/// The permitted imports of one of our crates, as the table explains them. Names are separated by spaces.
struct Row {
    name: &'static str,
    ours: &'static str,
    ours_in_tests: &'static str,
    others: &'static str,
}

/// The rows of the table.
fn table() -> impl Iterator<Item = Row> {
    let rows = list::rows(include_str!("../../imports.txt"));
    rows.map(|[name, ours, ours_in_tests, others]| Row { name, ours, ours_in_tests, others })
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

/// The violations in the output of `cargo metadata --no-deps`.
pub(crate) fn check(metadata: &Value) -> Result<Vec<Violation>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut violations = Vec::new();
    for row in table() {
        if !names.iter().any(|name| short(name) == row.name) {
            violations.push(Violation::new(row.name, RULE, "has a row in the table and no crate"));
        }
    }
    for package in packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let row = table().find(|row| row.name == short(name));
        let Some(row) = row else {
            violations.push(Violation::new(name, RULE, "has no row in the import table of tidy"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("no dependencies")?;
        violations.extend(dependencies.iter().filter_map(|edge| edge_violation(&row, &names, edge)));
    }
    Ok(violations)
}

fn edge_violation(row: &Row, workspace: &[&str], dependency: &Value) -> Option<Violation> {
    let name = dependency["name"].as_str().unwrap_or_default();
    // Imports only for a model checker's build are for tests, too.
    let test_only = dependency["kind"].as_str() == Some("dev") || dependency["target"].as_str() == Some("cfg(loom)");
    let target = short(name);
    let allowed = if workspace.contains(&name) {
        has(row.ours, target) || test_only && has(row.ours_in_tests, target)
    } else {
        test_only || row.others == "*" || has(row.others, name)
    };
    (!allowed).then(|| {
        let what = if test_only { "tests may not import" } else { "may not import" };
        let place = format!("{} -> {target}", row.name);
        Violation::new(place, RULE, format!("{} {what} {target}", row.name))
    })
}

/// The names of the rows.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    table().map(|row| row.name)
}

/// The package of a row.
#[cfg(test)]
pub(super) fn package(name: &str) -> String {
    if name == "afflux" || name == "xtask" { name.to_owned() } else { format!("afflux-{name}") }
}

/// The name of one of our packages without its prefix.
fn short(package: &str) -> &str {
    package.strip_prefix("afflux-").unwrap_or(package)
}
