//! A list of names for help texts, with a paragraph below each.

/// `title`, and below it each head with its text, indented. The lines are not wrapped.
pub fn listing(title: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    let lines = entries.map(|(head, text)| format!("  {head}\n      {text}"));
    format!("{title}:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
