//! Prose of the pages.
//!
//! The text is in a Markdown file beside the module that uses it, one paragraph under each heading. A sentence about
//! figures holds them as facts of the run's rows, between double braces. A fact is a figure, or what an experiment
//! computes by that name. A figure stands as `NAME, PARAMETER=VALUE, ..., FORM`: that of the first row that fits.
//!
//! Owns: the paragraphs that a page begins with, facts in sentences.
//! Does not own: the texts and facts, and the choice of texts for a page (the experiments).
//! Invariants: no sentence tells a fact that its run does not have.

use afflux_report::{Fields, Row, units};
use serde_json::Value;

use crate::pick::fits;

/// The name of a fact, and its text by the rows of a run; `None` if they do not have it.
pub(crate) type Fact = (&'static str, fn(&[Row]) -> Option<String>);

/// A paragraph with its facts. A sentence is left out if the rows lack one of its facts.
pub(crate) fn filled(paragraph: &str, facts: &[Fact], rows: &[Row]) -> String {
    let sentences = paragraph.split_inclusive(". ").filter_map(|sentence| {
        let mut parts = sentence.split("{{");
        let mut filled = parts.next()?.to_owned();
        for part in parts {
            let (place, rest) = part.split_once("}}")?;
            let computed = facts.iter().find(|(name, _)| *name == place);
            filled += &computed.map_or_else(|| figure(place, rows), |(_, of)| of(rows))?;
            filled += rest;
        }
        Some(filled)
    });
    sentences.collect::<String>().trim_end().to_owned()
}

/// A figure of the rows. Its form is digits after the point, a whole count, percent of one, or percent of what was
/// published.
fn figure(place: &str, rows: &[Row]) -> Option<String> {
    let mut words: Vec<&str> = place.split(',').map(str::trim).collect();
    let (name, form) = (words.remove(0), words.pop());
    let pick: Vec<(&str, &str)> = words.iter().filter_map(|word| word.split_once('=')).collect();
    let of = |fields: &Fields| fields.get(name).and_then(Value::as_f64);
    let mut found = rows.iter().filter(|row| fits(row, &pick)).filter_map(|row| Some((row, of(&row.metrics)?)));
    match form {
        Some("count") => found.next().map(|(_, figure)| units::count(figure.round() as u64)),
        Some("percent") => found.next().map(|(_, figure)| format!("{:.0}", 100.0 * figure)),
        Some("of-published") => {
            found.find_map(|(row, figure)| Some(format!("{:.0}", 100.0 * figure / of(&row.published)?)))
        }
        form => {
            let places = form.and_then(|form| form.strip_prefix('.')?.parse::<usize>().ok());
            debug_assert!(places.is_some(), "no such fact: {place}");
            found.next().zip(places).map(|((_, figure), places)| format!("{figure:.places$}"))
        }
    }
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
