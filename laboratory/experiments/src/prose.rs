//! Fixed prose of the pages, for every run the same.
//!
//! The text is in a Markdown file beside the module that uses it, one paragraph under each heading.
//!
//! Owns: finding a paragraph.
//! Does not own: the texts, and the choice of texts for a page (the experiments).
//! Invariants: a missing paragraph fails the build.

/// The start of a heading's line.
const HEADING: &[u8] = b"\n## ";

/// The paragraph under `## heading`, meant to be evaluated at compile time.
pub(crate) const fn section(text: &'static str, heading: &str) -> &'static str {
    let bytes = text.as_bytes();
    let mut at = 0;
    while !begins(bytes, at, HEADING)
        || !begins(bytes, at + HEADING.len(), heading.as_bytes())
        || !begins(bytes, at + HEADING.len() + heading.len(), b"\n")
    {
        assert!(at < bytes.len(), "the text has no such heading");
        at += 1;
    }
    let from = at + HEADING.len() + heading.len();
    let mut until = from;
    while until < bytes.len() && !begins(bytes, until, HEADING) {
        until += 1;
    }
    let (text, _) = text.split_at(until);
    let (_, paragraph) = text.split_at(from);
    paragraph.trim_ascii()
}

const fn begins(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    let mut index = 0;
    while index < with.len() {
        if at + index >= bytes.len() || bytes[at + index] != with[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// A paragraph of the file, its lines joined.
pub(crate) fn paragraph(section: &str) -> String {
    section.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
