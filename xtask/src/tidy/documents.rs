//! Rules about documents.
//!
//! Owns: the test whether a text in a document is a path of this repository, whether links lead somewhere, how long
//! documents may be.
//! Does not own: generated documents (`docs`).
//! Invariants: text in backticks that could not be a path of this repository is left alone.

use super::violation::Violation;
use crate::repository::{TextFile, beside};

/// Endings that make a bare word in backticks a file name.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

/// Paths of users' files, not of this repository.
const USERS: &[&str] = &["afflux.toml"];

/// Violations for every path in backticks that does not exist. `paths` are the repository's files.
pub(crate) fn missing_paths(document: &TextFile, paths: &[String]) -> Vec<Violation> {
    missing_in(unfenced(&document.text), &document.path, paths)
}

/// The same for the paths that a rule is kept in, in a source's comments.
pub(crate) fn missing_rule_paths(source: &TextFile, paths: &[String]) -> Vec<Violation> {
    let mut is_inside = false;
    let kept_in = (1..).zip(source.text.lines()).filter(|(_, line)| {
        let is_comment = line.trim_start().starts_with("//");
        is_inside = is_comment && (is_inside || line.contains("kept in: `"));
        is_inside
    });
    missing_in(kept_in, &source.path, paths)
}

fn missing_in<'a>(lines: impl Iterator<Item = (usize, &'a str)>, path: &str, paths: &[String]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in lines {
        for quoted in line.split('`').skip(1).step_by(2) {
            if is_path(quoted, paths) && !exists(quoted, path, paths) {
                violations.push(Violation::new(
                    format!("{path}:{number}"),
                    "docs-fresh",
                    format!("there is no {quoted}"),
                ));
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

/// Violations for every link whose file or heading does not exist. `documents` are all of them, `paths` the
/// repository's files.
pub(crate) fn dead_links(document: &TextFile, documents: &[TextFile], paths: &[String]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for target in unfenced(&document.text).flat_map(|(_, line)| targets(line)) {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        if file.contains("://") || file.starts_with("mailto:") {
            continue;
        }
        let path = if file.is_empty() { document.path.clone() } else { beside(&document.path, file) };
        let is_there = paths.iter().any(|known| {
            known.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let has_heading =
            |other: &TextFile| unfenced(&other.text).any(|(_, line)| line.starts_with('#') && slug(line) == heading);
        let is_whole = heading.is_empty() || documents.iter().filter(|other| other.path == path).any(has_heading);
        if !is_there || !is_whole {
            violations.push(Violation::new(
                document.path.clone(),
                "docs-fresh",
                format!("the link to {target} leads nowhere"),
            ));
        }
    }
    violations
}

/// The lines outside of fences, with their numbers.
fn unfenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The targets of the links in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchor of a heading, as GitHub makes it.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The most words of a document, and of all of them. Lines of tables count without their strokes.
const WORDS_MAX: &[(&str, usize)] = &[("docs/results.md", 3_500), ("", 35_000)];

/// Violations for documents that are longer than they may be. The notebook, the pages of crates and of experiments do
/// not count.
pub(crate) fn too_long(documents: &[TextFile]) -> Vec<Violation> {
    let is_counted = |path: &str| path.starts_with("docs/") || !path.contains('/');
    let mut violations = Vec::new();
    for (path, most) in WORDS_MAX {
        let counted = documents.iter().filter(|file| is_counted(&file.path) && file.path.starts_with(path));
        let words: usize = counted.map(|file| file.text.replace('|', " ").split_whitespace().count()).sum();
        if words > *most {
            let place = if path.is_empty() { "docs" } else { path };
            violations.push(Violation::new(
                place,
                "length",
                format!("{words} words, at most {most}: circumstances go to the notebook"),
            ));
        }
    }
    violations
}
