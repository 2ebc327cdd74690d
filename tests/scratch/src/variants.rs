//! Tables with a row for each variant of an enum.
//!
//! Owns: the check that none is missing. Does not own: the tables, the enums.
//! Invariants: the variants are those of the text that declares the enum.

use std::collections::BTreeSet;
use std::fmt::Debug;

/// Checks that the values have every variant of an enum, and no other. `text` declares the enum `name`.
///
/// # Panics
/// If not.
#[track_caller]
pub fn assert_each_variant(values: impl IntoIterator<Item = impl Debug>, text: &str, name: &str) {
    let variant = |value| format!("{value:?}").split([' ', '(']).next().unwrap_or_default().to_owned();
    let found: BTreeSet<String> = values.into_iter().map(variant).collect();
    let body = text.split_once(&format!("pub enum {name} {{")).and_then(|(_, rest)| rest.split_once("\n}"));
    let lines = body.into_iter().flat_map(|(body, _)| body.lines()).filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    let declared = named.map(|line| line.split([' ', ',', '(']).next().unwrap_or_default().to_owned()).collect();
    assert_eq!(found, declared, "{name}");
}
