//! Tables, charts and checks of an experiment's rows, by lists of columns.
//!
//! Owns: the tables and charts of an experiment, as data; the paragraphs below; the table of checks.
//! Does not own: the rows (the experiments), lines of a table (`lines`), charts (`charts`), their drawing (`report`).
//! Invariants: a figure is one of a row, or of rows that are alike in all named parameters. A published figure stands
//! beside the row that has it.

mod charts;
mod lines;

use afflux_report::{Align, Cell, FigureSource, Row, Table};

use crate::experiment::Findings;
use crate::labels::{self, Cells, Label};
pub(crate) use crate::pick::Pick;
use crate::pick::title_of;
use crate::prose::{self, Fact, OPENING};
pub(crate) use charts::{Along, ChartView, Within};
use lines::{Line, lines};

/// The title of a column, the figure's name in the rows, and digits after the point.
pub(crate) type Column = (&'static str, &'static str, usize);

/// The tables, charts and paragraphs of an experiment.
pub(crate) struct View {
    pub(crate) tables: &'static [TableView],
    pub(crate) charts: &'static [ChartView],
    /// Paragraphs below headings, as Markdown: the proposal, the findings, the open points, then the rest. A fact
    /// stands there as `{{name}}`.
    pub(crate) text: &'static str,
    /// What the paragraphs say of the rows.
    pub(crate) facts: &'static [Fact],
    /// The origins of the figures.
    pub(crate) labels: &'static [Cells],
}

/// A table of those rows that have any of its figures.
pub(crate) struct TableView {
    pub(crate) caption: &'static str,
    pub(crate) rows: Pick,
    /// Parameters that name a line, after the variant. Rows that are alike in all of them are one line.
    pub(crate) names: &'static [&'static str],
    pub(crate) columns: &'static [Column],
    pub(crate) note: &'static str,
    /// Whether the page folds it.
    pub(crate) is_detail: bool,
}

impl TableView {
    /// A table of all rows that have the figures.
    pub(crate) const fn of(
        caption: &'static str,
        names: &'static [&'static str],
        columns: &'static [Column],
        note: &'static str,
    ) -> Self {
        Self { caption, rows: &[], names, columns, note, is_detail: false }
    }

    /// The same of fewer rows.
    pub(crate) const fn only(self, rows: Pick) -> Self {
        Self { rows, ..self }
    }

    /// The same, for few readers.
    pub(crate) const fn detail(self) -> Self {
        Self { is_detail: true, ..self }
    }
}

impl View {
    /// The tables, charts and paragraphs of these rows.
    pub(crate) fn findings(&self, rows: &[Row]) -> Findings {
        let mut findings = Findings::default();
        for view in self.tables {
            for source in [FigureSource::Measured, FigureSource::Simulated] {
                let found = lines(rows, source, view.rows, view.names, &names_of(view.columns));
                let found = table(view, self.labels, &found, source);
                if view.is_detail { findings.details.extend(found) } else { findings.tables.extend(found) }
            }
        }
        findings.figures = self.charts.iter().flat_map(|view| charts::figures(view, rows)).collect();
        findings.opening = prose::opening(self.text, self.facts, rows);
        let rest = afflux_report::entries(self.text).into_iter().filter(|(heading, _)| !OPENING.contains(heading));
        let rest = rest.map(|(_, paragraph)| prose::filled(&paragraph, self.facts, rows));
        findings.says = rest.filter(|paragraph| !paragraph.is_empty()).collect();
        findings
    }
}

fn names_of(columns: &[Column]) -> Vec<&'static str> {
    columns.iter().map(|(_, name, _)| *name).collect()
}

fn table(view: &TableView, origins: &[Cells], lines: &[Line<'_>], source: FigureSource) -> Option<Table> {
    if lines.is_empty() {
        return None;
    }
    let measured = if source == FigureSource::Measured { "measured" } else { "simulated" };
    // A parameter that is equal in all lines stands below the table, once.
    let (same, differ): (Vec<usize>, Vec<usize>) = (0..view.names.len())
        .partition(|at| lines.len() > 1 && lines.iter().all(|line| line.names[*at] == lines[0].names[*at]));
    let mut columns = vec![(String::new(), Align::Left)];
    columns.extend(differ.iter().map(|at| (title_of(view.names[*at]), Align::Right)));
    let mut has = Vec::new();
    for (title, name, _) in view.columns {
        let own = lines.iter().any(|line| line.figure(name).is_some());
        let published = lines.iter().any(|line| line.published(name).is_some());
        has.push(published);
        columns.push(((*title).to_owned(), Align::Right));
        if published {
            let title = if own { "published" } else { title };
            columns.extend([(title.to_owned(), Align::Right), (String::from("off"), Align::Right)]);
        }
    }
    let columns: Vec<(&str, Align)> = columns.iter().map(|(title, align)| (title.as_str(), *align)).collect();
    let mut table = Table::new(format!("{}, {measured}", view.caption), &columns).named_by(1 + differ.len());
    let mut used = Vec::new();
    for line in lines {
        let mut cells = vec![line.variant.to_owned()];
        cells.extend(differ.iter().map(|at| line.names[*at].clone()));
        for ((_, name, places), published) in view.columns.iter().zip(&has) {
            let label = line.label(origins, name);
            let own = line.figure(name).map_or(String::new(), |figure| figure.text(*places));
            used.extend((!own.is_empty()).then_some(label));
            cells.push(labels::marked(own, label));
            if *published {
                cells.push(line.published(name).map_or(String::new(), |figure| figure.text(*places)));
                // What was put in is not off.
                cells.push(if label == Some(Label::PutIn) { String::new() } else { line.off(name) });
            }
        }
        table.row(cells);
    }
    let said = |at: &usize| format!("{} {}", title_of(view.names[*at]), lines[0].names[*at]);
    let said: Vec<String> = same.iter().filter(|at| !lines[0].names[**at].is_empty()).map(said).collect();
    if !said.is_empty() {
        table.note(format!("In all: {}.", said.join(", ")));
    }
    if !view.note.is_empty() {
        table.note(view.note);
    }
    labels::note(&used).into_iter().for_each(|note| table.note(note));
    Some(table)
}

/// A bound of a figure, and whether it holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(crate) what: String,
    pub(crate) found: String,
    pub(crate) met: bool,
}

impl Check {
    /// That a statement holds for all of some figures; nothing without figures.
    pub(crate) fn all(what: &str, met: usize, all: usize, unit: &str) -> Option<Self> {
        (all > 0).then(|| Self { what: what.to_owned(), found: format!("{met} of {all}{unit}"), met: met == all })
    }
}

/// Adds a table of checks as the first, and how many of them hold as the answer.
pub(crate) fn add_checks(findings: &mut Findings, caption: &str, checks: &[Check]) {
    if checks.is_empty() {
        return;
    }
    let mut table = Table::new(caption, &[("goal", Align::Left), ("found", Align::Left), ("met?", Align::Left)]);
    for Check { what, found, met } in checks {
        let met = if *met { Cell::from("met") } else { Cell::flagged("missed") };
        table.row([Cell::from(what.as_str()), Cell::from(found.as_str()), met]);
    }
    let held = checks.iter().filter(|check| check.met).count();
    findings.answer = format!("{caption}: {held} of {} are met.", checks.len());
    findings.tables.insert(0, table);
}

#[cfg(test)]
mod tests;
