//! The links of documents, as they are installed.
//!
//! Owns: which links lead to another installed document, the words in place of the others.
//! Does not own: which documents are installed.
//! Invariants: no link of an installed document leads nowhere. The rest of a document stays as it is.

use crate::repository;

/// A document with the path `document`, in which links to files that are not installed are replaced by their words and
/// paths. `is_installed` is asked for paths in the repository: installed documents stand to each other as they do
/// there.
pub(super) fn kept(text: &str, document: &str, is_installed: impl Fn(&str) -> bool) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, words, target, after)) = next(rest) {
        written.push_str(before);
        let path = path_from(document, target);
        match path.filter(|path| !is_installed(path)) {
            None => written.push_str(&format!("[{words}]({target})")),
            Some(path) => written.push_str(&format!("{words} (`{path}` of the sources)")),
        }
        rest = after;
    }
    written.push_str(rest);
    written
}

/// The text before the first link, its words, its target, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    loop {
        let middle = from + text[from..].find("](")?;
        let end = middle + text[middle..].find(')')?;
        let begin = text[..middle].rfind('[');
        match begin {
            Some(begin) if !text[begin..middle].contains("\n\n") && !is_fenced(&text[..begin]) => {
                return Some((&text[..begin], &text[begin + 1..middle], &text[middle + 2..end], &text[end + 1..]));
            }
            _ => from = middle + 2,
        }
    }
}

fn is_fenced(before: &str) -> bool {
    before.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
}

/// The path in the repository that a target of a document leads to; none for the document itself and other machines.
fn path_from(document: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or_default();
    if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
        return None;
    }
    Some(repository::beside(document, file))
}

#[cfg(test)]
mod tests;
