//! The page of an experiment.
//!
//! Owns: its order: what was proposed, found and left open, the answer, the experiment it repeats, plots, tables, their
//! explanation, words, rows.
//! Does not own: their contents (the experiments), the document (`report`).
//! Invariants: a reader needs no folded part to understand the rest; rows add at most [`ROWS_BYTES_MAX`] to a page.

#[cfg(test)]
mod tests;

use afflux_experiments::{Experiment, Findings};
use afflux_report::{FigureSource, HtmlPage, Row};

/// Rows beyond this are left out.
const ROWS_BYTES_MAX: usize = 256 << 10;

/// Title of the list of explained words.
const WORDS: &str = "Words on this page";

/// Warning at the top of a quick run's page.
const QUICK: &str =
    "This was a quick run: fewer cases, each as long as it has to be. All cases need a run without --quick.";

/// The request for a run, for its page.
pub(super) struct PageRequest<'a> {
    pub(super) command: &'a str,
    pub(super) quick: bool,
}

pub(super) fn html(experiment: &Experiment, findings: Findings, rows: &[Row], asked: &PageRequest<'_>) -> String {
    let mut page = HtmlPage::new(experiment.about, origin(rows));
    for (word, text) in &findings.opening {
        page.paragraph(&format!("{}: {text}", capital(word)));
    }
    if !findings.answer.is_empty() {
        page.answer(&findings.answer);
    }
    if asked.quick {
        page.paragraph(QUICK);
    }
    page.paragraph(&sentence(experiment.thread));
    page.paragraph(&sentence(&findings.labels));
    page.listing(asked.command);
    page.pointer("Names and units are explained below:", WORDS);
    for figure in findings.figures {
        page.figure(figure);
    }
    if !findings.tables.is_empty() {
        page.section("Tables");
    }
    findings.tables.iter().for_each(|table| page.table(table));
    page.section("What this shows, and what it does not");
    findings.says.iter().for_each(|sentence| page.paragraph(&sentence.replace('`', "")));
    page.section(WORDS);
    page.words(afflux_report::entries(experiment.words));
    page.section("In more detail");
    for table in &findings.details {
        page.folded(table.caption(), |page| page.table(table));
    }
    page.folded(&format!("All {} rows, as --json prints them", rows.len()), |page| raw(page, experiment, rows));
    page.html(&format!("afflux {}", env!("CARGO_PKG_VERSION")))
}

/// The source of the figures.
fn origin(rows: &[Row]) -> &'static str {
    let any = |source: FigureSource| rows.iter().any(|row| row.source == source);
    match (any(FigureSource::Simulated), any(FigureSource::Measured)) {
        (true, true) => "simulated and measured",
        (_, true) => "measured",
        _ => "simulated",
    }
}

/// Adds a capital and a full stop.
fn sentence(text: &str) -> String {
    format!("{}.", capital(text.trim_end_matches('.')))
}

/// The text with a capital at its beginning.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

fn raw(page: &mut HtmlPage, experiment: &Experiment, rows: &[Row]) {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let line = experiment.json(row);
        if text.len() + line.len() > ROWS_BYTES_MAX {
            text.push_str(&format!("and {} more, which --json prints", rows.len() - at));
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    page.listing(&text);
}
