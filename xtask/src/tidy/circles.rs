//! Imports within a crate run one way: there is no circle between its top-level modules.
//!
//! Owns: the imports between a crate's modules, the permitted circles with their reasons.
//! Does not own: edges between crates (`imports`), the reading of Rust (`lexer`).
//! Invariants: a circle outside of the table is a violation, and so is a row without its circle. Tests and models may
//! import everything. A crate's root, which names all its modules, belongs to no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::lexer;
use super::sources::is_test;
use crate::repository::TextFile;

const RULE: &str = "circles";

/// A permitted circle.
pub(super) struct Kept {
    /// The crate's folder.
    pub(super) name: &'static str,
    /// All modules of the circle, in order.
    pub(super) modules: &'static [&'static str],
    pub(super) reason: &'static str,
}

/// The permitted circles.
const KEPT: &[Kept] = &[Kept {
    name: "product/nfs",
    modules: &["calls", "connection", "mount", "server"],
    reason: "a call answers through its connection, and both are of a server",
}];

/// By crate, each module with the modules of the same crate that the module names.
type Edges<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<&'a str>>>;

/// The violations in these files.
pub(crate) fn check(files: &[TextFile]) -> Vec<Violation> {
    check_with(files, KEPT)
}

pub(super) fn check_with(files: &[TextFile], kept: &[Kept]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut found = BTreeSet::new();
    for (name, modules) in &edges(files) {
        for circle in circles(modules) {
            let row = kept.iter().position(|row| row.name == *name && row.modules == circle);
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
        let text = format!("has a row for {} ({}) and no such circle", row.modules.join(", "), row.reason);
        violations.push(Violation::new(row.name, RULE, text));
    }
    violations
}

/// The crate and the modules, from the top, of a file; `None` for roots and tests.
fn place(path: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = path.split_once("/src/")?;
    if is_test(path) || path.ends_with("loom_models.rs") {
        return None;
    }
    let mut modules: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    if modules.len() > 1 && modules.last() == Some(&"mod") {
        modules.pop();
    }
    (!matches!(modules[..], ["lib" | "main"] | ["bin", ..])).then_some((name, modules))
}

fn edges(files: &[TextFile]) -> Edges<'_> {
    let mut edges: Edges<'_> = BTreeMap::new();
    let placed: Vec<_> = files.iter().filter_map(|file| Some((file, place(&file.path)?))).collect();
    for (_, (name, modules)) in &placed {
        edges.entry(name).or_default().entry(modules[0]).or_default();
    }
    for (file, (name, modules)) in &placed {
        let tokens = lexer::tokens(&file.text);
        let Some(known) = edges.get_mut(name) else { continue };
        for path in lexer::paths(&tokens) {
            let named = top_level(&path.parts, modules.len()).and_then(|named| known.get_key_value(named));
            let Some(named) = named.map(|(named, _)| *named).filter(|named| *named != modules[0]) else { continue };
            known.entry(modules[0]).or_default().insert(named);
        }
    }
    edges
}

/// The part of a path that names an item at the crate's root, seen from a module at this depth.
fn top_level<'a>(parts: &[&'a str], depth: usize) -> Option<&'a str> {
    let up = parts.iter().take_while(|part| **part == "super").count();
    match parts {
        ["crate", named, ..] => Some(named),
        _ if up == depth => parts.get(up).copied(),
        _ => None,
    }
}

/// The sets of modules that can reach each other.
fn circles<'a>(modules: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<Vec<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        modules.keys().map(|from| (*from, reachable(modules, from))).collect();
    let circle = |module: &&'a str| -> Vec<&'a str> {
        let back = |other: &&&'a str| reached[*module].contains(**other) && reached[**other].contains(*module);
        modules.keys().filter(back).copied().collect()
    };
    modules.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The modules that can be reached from a module; itself only by a circle.
fn reachable<'a>(modules: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&str> = modules[from].iter().copied().collect();
    while let Some(next) = left.pop() {
        if found.insert(next) {
            left.extend(modules[next].iter().copied());
        }
    }
    found
}
