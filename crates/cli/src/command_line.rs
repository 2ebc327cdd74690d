//! The command as it was typed, for pages that show how to produce them again.
//!
//! Owns: quoting for a shell.
//! Does not own: the meaning of the words (`args`).
//! Invariants: a POSIX shell reads the text as the same words; the program is named without its directory.

#[cfg(test)]
mod tests;

/// This process's command.
pub(crate) fn own() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    joined(&words)
}

fn joined(words: &[String]) -> String {
    std::iter::once("afflux".to_owned()).chain(words.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

/// Quotes a word only if a shell would change it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+.,/:@%^".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
