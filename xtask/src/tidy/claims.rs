//! Claims of figures in documents: each names a command, and the small form of the command runs every night.
//!
//! Owns: which small form belongs to which command.
//! Does not own: the steps of the nightly command (`nightly`), the figures.
//! Invariants: a row of the table whose step is gone is a violation, and so is a row that no document needs.

use super::violation::Violation;
use crate::repository::TextFile;

/// Documents whose sections with tables make claims.
const DOCUMENTS: [&str; 3] = ["docs/results.md", "docs/threads.md", "docs/develop/simulator.md"];

/// The beginning of a command, and that of the nightly step or test that runs it in its small form.
const SMALL: &[(&str, &str)] = &[
    ("sudo afflux-lab run s4 --measured", "run -p afflux-lab -- run s4 --quick --measured"),
    ("sudo afflux-lab run govern --measured", "run -p afflux-lab -- run govern --quick --measured"),
    ("sudo afflux-lab run throttled --measured", "run -p afflux-lab -- run throttled --quick --measured"),
    ("sudo afflux-lab run writeback-real", "run -p afflux-lab -- run writeback-real --quick"),
    ("sudo afflux-lab run classes", "run -p afflux-lab -- run classes --quick"),
    // Simulated: a test has each quick form, and another makes the tables.
    ("afflux-lab run", "test -p afflux-lab --test documents"),
    ("cargo bench -p afflux-linux-server --bench hits", "bench -p afflux-linux-server --bench hits -- --quick"),
    ("cargo bench -p afflux-linux-device --bench cold", "bench -p afflux-linux-device --bench cold"),
    ("cargo bench -p afflux-linux-device --bench stream", "bench -p afflux-linux-device --bench stream"),
    ("cargo bench -p afflux-workloads --bench speed", "bench -p afflux-workloads --bench speed -- --quick"),
    ("cargo xtask race ", "xtask race --quick"),
    ("cargo xtask race-nfs", "xtask race-nfs --quick"),
    ("cargo xtask race-mount", "xtask race-mount --quick"),
    ("cargo xtask race-stores", "xtask race-stores --quick"),
    ("cargo xtask race-kills", "xtask race-kills --rounds 1"),
    ("cargo xtask mounted --store radosgw", "xtask mounted --store radosgw"),
    ("cargo xtask mounted", "xtask mounted --fuse"),
    ("cargo xtask guest", "xtask guest"),
    ("nfs-random", "test -p afflux-command --test end_to_end -- --ignored"),
    ("cargo test -p afflux-command", "test -p afflux-command --test end_to_end -- --ignored"),
    ("cargo test --release -p afflux-command", "test -p afflux-command --test end_to_end -- --ignored"),
    ("cargo test -p afflux-object-store", "test -p afflux-object-store --features stores -- --ignored"),
    ("cargo test -p afflux-nfs-check", "test -p afflux-nfs-check"),
    ("cargo test -p afflux-lab --test end_to_end", "test -p afflux-lab --test end_to_end"),
];

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
    for (command, step) in SMALL {
        if !steps.iter().any(|found| found.starts_with(step)) {
            let text = format!("the small form of `{command}` is no nightly step: {step}");
            violations.push(Violation::new("xtask/src/tidy/claims.rs", "claims", text));
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
    let words = words.join(" ") + " ";
    SMALL.iter().find(|(command, _)| words.starts_with(command)).map(|(_, step)| *step)
}

/// Whether a word before a command sets a variable for it.
fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || "_".contains(letter))
}
