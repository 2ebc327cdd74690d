//! Lists of words and their meanings: read from Markdown, and written for help texts.
//!
//! Owns: the form in Markdown (a heading `## word`, and a paragraph below it), the form in a help text.
//! Does not own: the words (callers), their display in pages (`html`).
//! Invariants: of Markdown only the text before the first such heading, and marks of code, are dropped.

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

/// `title`, and below it each head with its text, indented. The lines are not wrapped.
pub fn listing(title: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    let lines = entries.map(|(head, text)| format!("  {head}\n      {text}"));
    format!("{title}:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
