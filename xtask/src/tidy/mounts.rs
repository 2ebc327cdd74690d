//! Rules about options of mounts, wherever they are printed, documented or used.
//!
//! Owns: the words that a mount of this server needs.
//! Does not own: the server's own lines (`product/command/src/serve/front/banner.rs`), the explanation of each word
//! (the documents).
//! Invariants: options that name version 3 and a port have every word. Without one of these words the mount fails, or
//! programs hang on locks.

use super::violation::Violation;
use crate::repository::TextFile;

/// The alternatives for each word.
const WORDS: &[&[&str]] = &[
    // A number, or the server's own in code.
    &["tcp", "proto=tcp6", "{protocol}"],
    &["nolock", "local_lock=all", "locallocks"],
    &["port="],
    &["mountport="],
];

/// Violations for options of mounts that lack a word. Those over UDP are refused by the server, which tests show.
pub(crate) fn incomplete(file: &TextFile) -> Vec<Violation> {
    // The tests of this rule have incomplete ones.
    if file.path.ends_with("tidy/mounts/tests.rs") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        for options in line.split(|letter: char| letter.is_whitespace() || "\"'`|".contains(letter)) {
            violations.extend(lacking(options).map(|alternatives| {
                let text = format!("a mount needs {}: {options}", alternatives.join(" or "));
                Violation::new(format!("{}:{}", file.path, at + 1), "mount-words", text)
            }));
        }
    }
    violations
}

/// The words that options lack, if these are of a mount.
fn lacking(options: &str) -> impl Iterator<Item = &'static [&'static str]> {
    let words: Vec<String> = options.split(',').map(str::to_owned).collect();
    let is = |word: &str| words.iter().any(|there| there == word);
    let is_a_mount = is("vers=3") && !is("udp") && words.iter().any(|there| there.contains("port="));
    let has =
        move |word: &&str| words.iter().any(|there| there == word || word.ends_with('=') && there.starts_with(word));
    WORDS.iter().copied().filter(move |alternatives| is_a_mount && !alternatives.iter().any(&has))
}

#[cfg(test)]
mod tests;
