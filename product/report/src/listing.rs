//! A list of names for help texts, with a paragraph below each.

/// Widest line of the list.
const WIDTH: usize = 100;

/// `title`, and below it each head with its text, indented and broken between words.
pub fn listing(title: &str, entries: impl Iterator<Item = (String, String)>) -> String {
    let lines = entries.map(|(head, text)| format!("  {head}\n{}", wrapped(&text, "      ")));
    format!("{title}:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Broken between words, each line with something before it.
fn wrapped(text: &str, before: &str) -> String {
    let mut lines = vec![before.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == before.len() => last.push_str(word),
            Some(last) if line + 1 + word.chars().count() <= WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(format!("{before}{word}")),
        }
    }
    lines.join("\n")
}
