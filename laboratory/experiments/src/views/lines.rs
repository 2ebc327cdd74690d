//! Lines of a table: rows that are alike in all named parameters.
//!
//! Owns: the figure of several rows, figures as text.
//! Does not own: the table (`views`), which rows fit (`pick`).
//! Invariants: several numbers are shown by their median, with the least and the most of them.

use afflux_figures::median_and_range;
use afflux_report::{FigureSource, Row, units};
use serde_json::Value;

use crate::labels::{Cells, Label, label_of};
use crate::pick::{Pick, fits, shown, text};

/// Rows that are alike.
pub(super) struct Line<'a> {
    pub(super) variant: &'a str,
    pub(super) names: Vec<String>,
    rows: Vec<&'a Row>,
}

/// A figure of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LineFigure {
    /// Median, least and most.
    Number([f64; 3]),
    Text(String),
}

/// The lines of all rows from a source that fit, and have any of the figures.
pub(super) fn lines<'a>(
    rows: &'a [Row],
    from: FigureSource,
    pick: Pick,
    names: &[&str],
    figures: &[&str],
) -> Vec<Line<'a>> {
    let fits = |row: &&Row| {
        let has = |name: &&str| row.metrics.get(name).or_else(|| row.published.get(name)).is_some();
        row.source == from && figures.iter().any(has) && fits(row, pick)
    };
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows.iter().filter(fits) {
        let own: Vec<String> = names.iter().map(|name| shown(row, name)).collect();
        match lines.iter_mut().find(|line| line.variant == row.variant && line.names == own) {
            Some(line) => line.rows.push(row),
            None => lines.push(Line { variant: &row.variant, names: own, rows: vec![row] }),
        }
    }
    lines
}

impl Line<'_> {
    fn of<'b>(values: impl Iterator<Item = &'b Value>) -> Option<LineFigure> {
        let values: Vec<&Value> = values.filter(|value| !value.is_null()).collect();
        match median_and_range(values.iter().filter_map(|value| value.as_f64())) {
            Some(number) => Some(LineFigure::Number(number)),
            None => values.first().map(|value| LineFigure::Text(text(value))),
        }
    }

    /// A figure of the rows.
    pub(super) fn figure(&self, name: &str) -> Option<LineFigure> {
        Self::of(self.rows.iter().filter_map(|row| row.metrics.get(name)))
    }

    pub(super) fn published(&self, name: &str) -> Option<LineFigure> {
        Self::of(self.rows.iter().filter_map(|row| row.published.get(name)))
    }

    /// A parameter in words.
    pub(super) fn param(&self, name: &str) -> Option<String> {
        self.rows.first()?.params.get(name)?.as_str().map(str::to_owned)
    }

    /// The label of a figure: that of the first row.
    pub(super) fn label(&self, cells: &[Cells], name: &str) -> Option<Label> {
        self.rows.first().and_then(|row| label_of(cells, row, name))
    }

    /// Our figure's distance from the published one; a percentage is itself one.
    pub(super) fn off(&self, name: &str) -> String {
        let is_distance = name.contains("percent");
        match (self.figure(name).filter(|_| !is_distance), self.published(name)) {
            (Some(LineFigure::Number([own, ..])), Some(LineFigure::Number([published, ..]))) if published != 0.0 => {
                units::change((own / published - 1.0) * 100.0)
            }
            _ => String::new(),
        }
    }
}

impl LineFigure {
    pub(super) fn number(&self) -> Option<[f64; 3]> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn text(&self, places: usize) -> String {
        let one = |value: f64| match places {
            0 if value >= 0.0 => units::count(value.round() as u64),
            _ => format!("{value:.places$}"),
        };
        match self {
            Self::Text(text) => text.clone(),
            Self::Number([middle, least, most]) if least < most => {
                format!("{} ({} to {})", one(*middle), one(*least), one(*most))
            }
            Self::Number([middle, ..]) => one(*middle),
        }
    }
}
