//! A list of words and their meanings, read from Markdown.
//!
//! Owns: the form: a heading `## word`, and a paragraph below it.
//! Does not own: the words (callers), their display (`html`).
//! Invariants: only the text before the first such heading, and marks of code, are dropped.

#[cfg(test)]
mod tests;

/// Each heading with the text below it on one line, in the order of the text.
#[must_use]
pub fn entries(text: &str) -> Vec<(&str, String)> {
    let one_line = |text: &str| {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ").replace('`', "")
    };
    let parts = text.split("\n## ").skip(1).map(|part| part.split_once('\n').unwrap_or((part, "")));
    parts.map(|(word, below)| (word.trim(), one_line(below))).collect()
}
