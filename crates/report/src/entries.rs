//! A list of words and their meanings, read from Markdown.
//!
//! Owns: the form: a heading `## word`, and a paragraph below it. Does not own: the words (callers), how they are shown
//! (`page`).
//! Invariants: nothing of the text is lost but what stands before the first such heading.

#[cfg(test)]
mod tests;

/// Each heading with what is below it on one line, in the order of the text.
#[must_use]
pub fn entries(text: &str) -> Vec<(&str, String)> {
    let one_line =
        |text: &str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let parts = text.split("\n## ").skip(1);
    parts
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .map(|(word, below)| (word.trim(), one_line(below)))
        .collect()
}
