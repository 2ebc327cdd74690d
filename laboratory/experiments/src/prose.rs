//! Prose of the pages.
//!
//! The text is in a Markdown file beside the module that uses it, one paragraph under each heading. A sentence about figures
//! holds them as facts, which are computed from the rows of the run.
//!
//! Owns: finding a paragraph, facts in sentences.
//! Does not own: the texts and facts, and the choice of texts for a page (the experiments).
//! Invariants: a missing paragraph fails the build. No sentence tells a fact that its run does not have.

use afflux_report::Row;

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

/// The name of a fact, and its text by the rows of a run; `None` if they do not have it.
pub(crate) type Fact = (&'static str, fn(&[Row]) -> Option<String>);

/// A paragraph with its facts. A sentence is left out if the rows lack one of its facts.
pub(crate) fn filled(paragraph: &str, facts: &[Fact], rows: &[Row]) -> String {
    let sentences = paragraph.split_inclusive(". ").filter_map(|sentence| {
        let mut filled = sentence.to_owned();
        for (name, of) in facts {
            let place = format!("{{{{{name}}}}}");
            if filled.contains(&place) {
                filled = filled.replace(&place, &of(rows)?);
            }
        }
        debug_assert!(!filled.contains("{{"), "no such fact: {filled}");
        Some(filled)
    });
    sentences.collect::<String>().trim_end().to_owned()
}

/// The headings of the paragraphs that a page begins with.
pub(crate) const OPENING: [&str; 3] = ["proposed", "found", "open"];

/// The paragraphs about the proposal, the findings and the open points, as far as they tell something.
pub(crate) fn opening(text: &str, facts: &[Fact], rows: &[Row]) -> Vec<(&'static str, String)> {
    let entries = afflux_report::entries(text);
    let of = |word: &&'static str| {
        let (_, paragraph) = entries.iter().find(|(heading, _)| heading == word)?;
        Some((*word, filled(paragraph, facts, rows))).filter(|(_, paragraph)| !paragraph.is_empty())
    };
    OPENING.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
