//! Imports within a crate run one way: no circle between its files.
//!
//! Owns: the definition of a circle.
//! Does not own: edges between crates (`imports`), the file that a path leads to (`modules`).
//! Invariants: a circle that is not in the list is a violation, and so is a line of the list without its circle. Tests
//! and models may look at everything.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{self, ModulePath, Modules};
use super::violation::Violation;
use crate::repository::TextFile;

/// The list of circles that are kept: `CRATE | FILE FILE… | REASON`.
pub(super) const LIST: &str = "xtask/circles.txt";

const RULE: &str = "circles";

/// The violations in these files, given the text of the list.
pub(super) fn check(files: &[TextFile], list: &str) -> Vec<Violation> {
    let mut kept: BTreeSet<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let mut violations = Vec::new();
    for (name, modules) in &modules::crates(files) {
        for circle in circles(&named(modules)) {
            let begin = format!("{name} | {} | ", circle.join(" "));
            let line = kept.iter().copied().find(|line| line.len() > begin.len() && line.starts_with(&begin));
            if !line.is_some_and(|line| kept.remove(line)) {
                let text = format!("{} import each other: let imports run one way", circle.join(", "));
                violations.push(Violation::new(*name, RULE, text));
            }
        }
    }
    violations.extend(kept.iter().map(|line| Violation::new(LIST, RULE, format!("there is no such circle: {line}"))));
    violations
}

/// Each file of a crate with the files that it names; the root is `.`.
fn named(modules: &Modules<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let name = |place: &ModulePath<'_>| if place.is_empty() { ".".to_owned() } else { place.join("/") };
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
