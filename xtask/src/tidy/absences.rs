//! The rule about errors that would pass for absences.
//!
//! Owns: the files whose answers mean that everything was seen, and the calls that lose an error there.
//! Does not own: the reading of Rust (`lexer`).
//! Invariants: a file that is renamed or deleted leaves the table with that change.

use super::lexer;
use super::violation::Violation;
use crate::repository::TextFile;

/// Files in which something counts as gone, or as all there is, once a look at the host has ended.
const FILES: &[&str] = &["product/volume/src/handles/adopt.rs", "product/volume/src/search/walk.rs"];

/// Endings of calls that turn an error into nothing, as tokens, and their text.
const LOSSES: &[(&[&str], &str)] = &[
    (&[".", "unwrap_or_default", "("], ".unwrap_or_default()"),
    (&[".", "ok", "(", ")"], ".ok()"),
    (&[".", "is_ok_and", "("], ".is_ok_and()"),
    (&[".", "unwrap_or", "(", "false", ")"], ".unwrap_or(false)"),
    (&[".", "flatten", "(", ")"], ".flatten()"),
    (&["Result", "::", "ok"], "Result::ok"),
    (&["let", "Ok", "("], "let Ok(…)"),
];

/// Everywhere: an answer of the host is awaited, and its error lost.
const AWAITED: &[&str] = &["await", ".", "unwrap_or_default", "("];

/// Violations of one Rust file.
pub(crate) fn check(file: &TextFile) -> Vec<Violation> {
    if !file.path.starts_with("product/") || super::sources::is_test(&file.path) {
        return Vec::new();
    }
    let tokens = lexer::tokens(&file.text);
    let is_listed = FILES.contains(&file.path.as_str());
    let losses = LOSSES
        .iter()
        .filter(|_| is_listed)
        .chain([(AWAITED, ".await.unwrap_or_default()")].iter().filter(|_| !is_listed));
    let mut violations = Vec::new();
    for (loss, text) in losses {
        let found =
            tokens.windows(loss.len()).filter(|at| at.iter().zip(*loss).all(|(token, text)| token.text == *text));
        violations.extend(found.map(|at| {
            let text = format!("`{text}` makes an absence of an error: name the errors that mean it");
            Violation::new(format!("{}:{}", file.path, at[0].line), "error-is-no-absence", text)
        }));
    }
    violations
}

/// Files of the table that are not there.
pub(crate) fn missing(files: &[TextFile]) -> Vec<Violation> {
    let missing = FILES.iter().filter(|path| !files.iter().any(|file| file.path == **path));
    missing
        .map(|path| Violation::new(*path, "error-is-no-absence", "the file is in the table and does not exist"))
        .collect()
}
