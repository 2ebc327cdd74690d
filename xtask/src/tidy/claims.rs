//! Claims of figures in documents: each names a command, and the small form of the command runs every night.
//!
//! Owns: the search for commands.
//! Does not own: which small form belongs to which command (`xtask/claims.txt`), the steps of the nightly command
//! (`nightly`), the figures.
//! Invariants: a row of the table whose step is gone is a violation, and so is a row that no document needs.

use super::violation::Violation;
use crate::list;
use crate::repository::TextFile;

/// Documents whose sections with tables make claims.
const DOCUMENTS: [&str; 3] = ["docs/results.md", "docs/threads.md", "docs/develop/simulator.md"];

/// The beginning of a command, and that of the nightly step or test that runs it in its small form.
fn small() -> impl Iterator<Item = [&'static str; 2]> {
    list::rows(include_str!("../../claims.txt"))
}

/// Violations for each section with a table and without a command, each command without a small form, and each row of
/// the table without a step.
pub(crate) fn check(documents: &[TextFile], steps: &[&str]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for document in documents.iter().filter(|document| DOCUMENTS.contains(&document.path.as_str())) {
        for (place, section) in sections(document) {
            let commands: Vec<&str> = commands(section).collect();
            if section.contains("\n|-|") && commands.is_empty() {
                violations.push(Violation::new(place, "claims", "has a table and names no command"));
            }
        }
    }
    for [command, step] in small() {
        if !steps.iter().any(|found| found.starts_with(step)) {
            let text = format!("the small form of `{command}` is no nightly step: {step}");
            violations.push(Violation::new("xtask/claims.txt", "claims", text));
        }
    }
    violations
}

/// The sections of a document that may make claims, with their places. The first tells what the others mean.
fn sections(document: &TextFile) -> impl Iterator<Item = (String, &str)> {
    document.text.split("\n## ").skip(1).filter_map(|section| {
        let title = section.lines().next()?;
        Some((format!("{}: {title}", document.path), section)).filter(|_| !title.starts_with("Which file"))
    })
}

/// The commands in backticks that have a small form.
fn commands(section: &str) -> impl Iterator<Item = &str> {
    section.split('`').skip(1).step_by(2).filter(|quoted| small_form(quoted).is_some())
}

/// The step that runs the small form of a command, if it is a command.
fn small_form(quoted: &str) -> Option<&'static str> {
    let words: Vec<&str> = quoted.split_whitespace().skip_while(|word| is_variable(word)).collect();
    let words = words.join(" ");
    small().find(|[command, _]| words.starts_with(command)).map(|[_, step]| step)
}

/// Whether a word before a command sets a variable for it.
fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || "_".contains(letter))
}
