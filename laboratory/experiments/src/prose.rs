//! Prose of the pages.
//!
//! The text is in a Markdown file beside the module that uses it, one paragraph under each heading. A sentence about
//! figures holds them as facts, which are computed from the rows of the run.
//!
//! Owns: the paragraphs that a page begins with, facts in sentences.
//! Does not own: the texts and facts, and the choice of texts for a page (the experiments).
//! Invariants: no sentence tells a fact that its run does not have.

use afflux_report::Row;

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
