//! The origin of each figure: put in, transcribed, chosen to match, predicted, or a hold-out.
//!
//! Owns: the label of a cell, the line at the top, the marks in tables.
//! Does not own: which cells have which label (each experiment's list).
//! Invariants: a label belongs to a cell, that is to one name in one row. The line at the top tells the labels of cells
//! that are there.

use afflux_report::{Fields, FigureSource, Row};
use serde_json::{Map, Value};

use crate::pick::{Pick, fits};

/// The origin of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Label {
    /// From a source, or a cost that was chosen from it.
    PutIn,
    /// Written down from a kernel's code, and checked against a count by hand.
    Transcribed,
    /// A parameter was chosen so that this figure, or the published one beside it, comes out.
    Chosen,
    /// What follows from the others.
    Predicted,
    /// A published figure stands beside it, by which nothing was chosen.
    HoldOut,
}

impl Label {
    /// All of them, in the order of the line.
    pub const ALL: [Self; 5] = [Self::PutIn, Self::Transcribed, Self::Chosen, Self::Predicted, Self::HoldOut];

    /// The words for it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::PutIn => "put in",
            Self::Transcribed => "transcribed",
            Self::Chosen => "chosen to match",
            Self::Predicted => "predicted",
            Self::HoldOut => "hold-out",
        }
    }

    /// The mark behind a figure in a table; none for what is predicted.
    const fn mark(self) -> &'static str {
        match self {
            Self::PutIn => "p",
            Self::Transcribed => "t",
            Self::Chosen => "m",
            Self::Predicted => "",
            Self::HoldOut => "h",
        }
    }
}

/// Cells of one origin.
#[derive(Clone, Copy, Debug)]
pub struct Cells {
    /// Their label.
    pub label: Label,
    /// What they are, for the line at the top.
    pub what: &'static str,
    names: &'static [&'static str],
    rows: Pick,
    beside_published: bool,
}

impl Cells {
    /// The figures or parameters of these names, in all rows.
    pub(crate) const fn of(label: Label, what: &'static str, names: &'static [&'static str]) -> Self {
        Self { label, what, names, rows: &[], beside_published: false }
    }

    /// The same in fewer rows.
    pub(crate) const fn only(self, rows: Pick) -> Self {
        Self { rows, ..self }
    }

    /// The same where a published figure stands beside them.
    pub(crate) const fn beside_published(self) -> Self {
        Self { beside_published: true, ..self }
    }

    fn has(&self, row: &Row, name: &str) -> bool {
        let is_published = || row.published.get(name).is_some_and(|published| !published.is_null());
        self.names.contains(&name) && fits(row, self.rows) && (!self.beside_published || is_published())
    }
}

/// What a row tells of a name, if it tells anything.
fn has_value(row: &Row, name: &str) -> bool {
    let given = |fields: &Fields| fields.get(name).is_some_and(|value| !value.is_null());
    given(&row.metrics) || given(&row.params)
}

/// The label of a figure of a row. What is measured has none, unless the list says so.
pub(crate) fn label_of(cells: &[Cells], row: &Row, name: &str) -> Option<Label> {
    let listed = cells.iter().find(|cells| cells.has(row, name)).map(|cells| cells.label);
    listed.or((row.source == FigureSource::Simulated).then_some(Label::Predicted))
}

/// A figure's text with the mark of its label.
pub(crate) fn marked(text: String, label: Option<Label>) -> String {
    match label.map_or("", Label::mark) {
        mark if mark.is_empty() || text.is_empty() => text,
        mark => format!("{text} {mark}"),
    }
}

/// The note that explains the marks of these labels; nothing if there are none.
pub(crate) fn note(labels: &[Option<Label>]) -> Option<String> {
    let used = Label::ALL.into_iter().filter(|label| !label.mark().is_empty() && labels.contains(&Some(*label)));
    let used: Vec<String> = used.map(|label| format!("{}: {}", label.mark(), label.words())).collect();
    (!used.is_empty()).then(|| format!("Behind a figure, {}.", used.join(", ")))
}

/// The labels of rows that come one after the other.
#[derive(Debug)]
pub(crate) struct SeenLabels {
    cells: &'static [Cells],
    seen: Vec<bool>,
    has_rest: bool,
}

impl SeenLabels {
    pub(crate) fn new(cells: &'static [Cells]) -> Self {
        Self { cells, seen: vec![false; cells.len()], has_rest: false }
    }

    pub(crate) fn add(&mut self, row: &Row) {
        for (cells, seen) in self.cells.iter().zip(&mut self.seen) {
            *seen |= cells.names.iter().any(|name| has_value(row, name) && cells.has(row, name));
        }
        let is_listed = |name: &str| self.cells.iter().any(|cells| cells.has(row, name));
        self.has_rest |= row.source == FigureSource::Simulated && row.metrics.names().any(|name| !is_listed(name));
    }

    /// A sentence about the labels of all cells so far.
    pub(crate) fn line(&self) -> String {
        let of = |label: Label| {
            let listed = self.cells.iter().zip(&self.seen).filter(|(cells, seen)| **seen && cells.label == label);
            let mut words: Vec<&str> = listed.map(|(cells, _)| cells.what).collect();
            words.dedup();
            if label == Label::Predicted && self.has_rest {
                words.push("the rest");
            }
            format!("{}: {}", label.words(), if words.is_empty() { "nothing".to_owned() } else { words.join(", ") })
        };
        Label::ALL.map(of).join("; ")
    }
}

/// A row with the labels of its figures, as `--json` prints it. What is predicted needs no label there.
pub(crate) fn json(cells: &[Cells], row: &Row) -> String {
    let names = row.metrics.names().filter(|name| has_value(row, name));
    let labels = names.fold(Map::new(), |mut labels, name| {
        if let Some(label) = label_of(cells, row, name).filter(|label| *label != Label::Predicted) {
            labels.insert(name.to_owned(), label.words().into());
        }
        labels
    });
    let row = row.to_string();
    format!("{},\"labels\":{}}}", row.strip_suffix('}').unwrap_or(&row), Value::Object(labels))
}

#[cfg(test)]
mod tests;
