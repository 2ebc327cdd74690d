//! The command as it was typed, for pages that show how to produce them again.
//!
//! Owns: quoting for a shell.
//! Does not own: the meaning of the words (`args`).
//! Invariants: a shell reads the text as the same words; the program is named without its directory.

#[cfg(test)]
mod tests;

use crate::output::shown;

/// The command line of this process, as a shell takes it; `program` stands for the path it was called by.
#[must_use]
pub fn own(program: &str) -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    joined(program, &words)
}

fn joined(program: &str, words: &[String]) -> String {
    std::iter::once(program.to_owned()).chain(words.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

/// Quotes a word only if a shell would change it. Letters that would control a terminal are escaped, and a shell (bash,
/// zsh, and others that know `$'...'`) restores them.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+.,/:@%^".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if shown(word) != word {
        return format!("$'{}'", shown(word.replace('\\', r"\\").replace('\'', r"\'")));
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
