//! Rules about documents.
//!
//! Owns: the test whether a text in a document is a path of this repository.
//! Does not own: generated documents (`docs`).
//! Invariants: text in backticks that could not be a path of this repository is left alone.

use super::violation::Violation;
use crate::repository::TextFile;

/// Endings that make a bare word in backticks a file name.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

/// Paths of users' files, not of this repository.
const USERS: &[&str] = &["afflux.toml"];

/// Violations for every path in backticks that does not exist. `paths` are the repository's files.
pub(crate) fn missing_paths(document: &TextFile, paths: &[String]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut fenced = false;
    for (at, line) in document.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for quoted in line.split('`').skip(1).step_by(2) {
            if is_path(quoted, paths) && !exists(quoted, &document.path, paths) {
                let place = format!("{}:{}", document.path, at + 1);
                violations.push(Violation::new(place, "docs-fresh", format!("there is no {quoted}")));
            }
        }
    }
    violations
}

fn is_path(quoted: &str, paths: &[String]) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    if quoted.is_empty() || quoted.starts_with('/') || !quoted.chars().all(plain) {
        return false;
    }
    if USERS.contains(&quoted) {
        return false;
    }
    let named_file = ENDINGS.iter().any(|ending| quoted.ends_with(ending));
    let first = quoted.split('/').next().unwrap_or_default();
    let inside =
        quoted.contains('/') && paths.iter().any(|path| path.split_once('/').is_some_and(|(top, _)| top == first));
    named_file || inside
}

/// The folders of crates.
const TOPS: [&str; 4] = ["product/", "world/", "laboratory/", "tests/"];

/// Whether there is such a file or directory: from the top, from a folder of crates, from the document's own
/// directory, or (for a bare name) anywhere.
fn exists(quoted: &str, document: &str, paths: &[String]) -> bool {
    let quoted = quoted.trim_end_matches('/').trim_start_matches("./");
    let beside = document.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"));
    TOPS.into_iter().chain(["", beside.as_str()]).any(|base| {
        let full = format!("{base}{quoted}");
        paths
            .iter()
            .any(|path| path.strip_prefix(full.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }) || (!quoted.contains('/') && paths.iter().any(|path| path.ends_with(&format!("/{quoted}"))))
}
