//! Imports within a crate run one way: no circle between its files.
//!
//! Owns: the definition of a circle.
//! Does not own: edges between crates (`imports`), the circles that are kept (`kept`), the file that a path leads to
//! (`modules`).
//! Invariants: a circle that is not in the table is a violation, and so is a row without its circle. Tests and models
//! may look at everything.

pub(super) mod kept;

use std::collections::{BTreeMap, BTreeSet};

use self::kept::{KEPT, PermittedCircle};
use super::modules::{self, Modules, Place};
use super::violation::Violation;
use crate::repository::TextFile;

const RULE: &str = "circles";

/// The violations in these files.
pub(crate) fn check(files: &[TextFile]) -> Vec<Violation> {
    check_with(files, KEPT)
}

pub(super) fn check_with(files: &[TextFile], kept: &[PermittedCircle]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut found = BTreeSet::new();
    for (name, modules) in &modules::crates(files) {
        for circle in circles(&named(modules)) {
            let row = kept.iter().position(|row| row.name == *name && row.files == circle);
            match row {
                Some(row) => {
                    found.insert(row);
                }
                None => {
                    let text = format!("{} import each other: let imports run one way", circle.join(", "));
                    violations.push(Violation::new(*name, RULE, text));
                }
            }
        }
    }
    for (_, row) in kept.iter().enumerate().filter(|(at, _)| !found.contains(at)) {
        let text = format!("has a row for {} ({}) and no such circle", row.files.join(", "), row.reason);
        violations.push(Violation::new(row.name, RULE, text));
    }
    violations
}

/// Each file of a crate with the files that it names; the root is `.`.
fn named(modules: &Modules<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let name = |place: &Place<'_>| if place.is_empty() { ".".to_owned() } else { place.join("/") };
    let edges = modules.edges();
    edges.iter().map(|(from, to)| (name(from), to.iter().map(name).collect())).collect()
}

/// The sets of files that can reach each other.
fn circles(files: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        files.keys().map(|from| (from.as_str(), reachable(files, from))).collect();
    let circle = |file: &String| -> Vec<&str> {
        let back = |other: &&str| reached[file.as_str()].contains(*other) && reached[*other].contains(file.as_str());
        files.keys().map(String::as_str).filter(back).collect()
    };
    files.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The files that imports reach from a file. The file itself is among them only if a circle leads back to it.
fn reachable<'a>(files: &'a BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&str> = files[from].iter().map(String::as_str).collect();
    while let Some(next) = left.pop() {
        if found.insert(next) {
            left.extend(files[next].iter().map(String::as_str));
        }
    }
    found
}
