//! The description of an experiment: a name, labels, options, rows while it runs, and findings at the end.
//!
//! Owns: the description and its data; what was asked of a run.
//! Does not own: the list of experiments (`lib.rs`), how rows and findings are shown (`report` and the command).
//! Invariants: every figure reaches the reader as a [`Row`]; findings only arrange rows that were reported.

use std::fmt;

use afflux_report::{Drawing, Row, Table};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};

use crate::labels::{self, Cells, SeenLabels};

/// The request for a run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Fewer cases, each as long as it has to be.
    pub quick: bool,
    /// Whether to run on the hardware of this machine, beside or instead of the simulation.
    pub measured: bool,
    /// What [`Experiment::command`] read.
    pub options: ArgMatches,
}

/// Observes an experiment while it runs.
pub trait Watch {
    /// Reports a row.
    fn row(&mut self, row: &Row);
    /// Reports the current step, and the share of the whole run that is done (0 to 1).
    fn step(&mut self, what: &str, done: f64);
    /// Reports a remark to show once, wherever the output goes, such as the expected time.
    fn remark(&mut self, _: &str) {}
}

/// The findings of an experiment, arranged for a reader.
#[derive(Debug, Default)]
pub struct Findings {
    /// The origins of its figures, in a sentence.
    pub labels: String,
    /// The proposal, the findings and the open points: each with its heading.
    pub opening: Vec<(&'static str, String)>,
    /// The answer to the experiment's question, in a sentence with its figures.
    pub answer: String,
    /// Tables, first the published figures and ours side by side.
    pub tables: Vec<Table>,
    /// Tables that few readers need; the page folds them.
    pub details: Vec<Table>,
    /// Plots, for the page.
    pub figures: Vec<Drawing>,
    /// The conclusions and their limits, in a sentence or a few each.
    pub says: Vec<String>,
}

/// The reason why an experiment did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// There is no such experiment.
    #[error("there is no experiment '{name}'{near}; there are {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// Names near to it, as a question.
        near: String,
        /// All names.
        known: String,
    },
    /// An option's value cannot be used.
    #[error("--{name} {value}: {why}")]
    Value {
        /// The option.
        name: &'static str,
        /// The given value.
        value: String,
        /// The reason, and the values that are allowed.
        why: String,
    },
    /// A part of the run failed.
    #[error("{0}")]
    Failed(String),
}

impl LabError {
    /// A part of the run failed for this reason.
    pub(crate) fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// An experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The name, as in `afflux-lab run NAME`.
    pub name: &'static str,
    /// The subject, in one line.
    pub about: &'static str,
    /// The origins of its figures; what the list does not name is predicted, or measured.
    pub labels: &'static [Cells],
    /// The thread that the experiment repeats: title, author, list, date. If there is none, the source of its question.
    pub thread: &'static str,
    /// The words, names and units of the page that need an explanation, as Markdown: a heading with a paragraph each.
    pub words: &'static str,
    /// Adds its options to a command.
    pub options: fn(Command) -> Command,
    /// Whether it can run on hardware.
    pub can_measure: bool,
    /// The run. It passes rows on as they come, and blocks, at times for minutes.
    pub run: fn(&Request, &mut StoredRows<'_>) -> Result<Findings, LabError>,
}

impl Experiment {
    /// Its command, which reads its options.
    #[must_use]
    pub fn command(&self) -> Command {
        let command = (self.options)(Command::new(self.name)).about(self.about).args_override_self(true);
        command.mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg })
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// When an option cannot be used, or a run fails.
    pub fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError> {
        let mut kept = StoredRows { rows: Vec::new(), seen: SeenLabels::new(self.labels), watch };
        let findings = (self.run)(request, &mut kept)?;
        Ok(Findings { labels: kept.seen.line(), ..findings })
    }

    /// A figure's text with the mark of its label, as tables show it.
    #[must_use]
    pub fn marked(&self, row: &Row, name: &str, text: String) -> String {
        labels::marked(text, labels::label_of(self.labels, row, name))
    }

    /// A row on one line, with the labels of its figures.
    #[must_use]
    pub fn json(&self, row: &Row) -> String {
        labels::json(self.labels, row)
    }
}

/// What an experiment reports to: stores the rows, checks their labels, and passes all on.
pub struct StoredRows<'a> {
    pub(crate) rows: Vec<Row>,
    seen: SeenLabels,
    watch: &'a mut dyn Watch,
}

impl Watch for StoredRows<'_> {
    fn row(&mut self, row: &Row) {
        self.seen.add(row);
        self.rows.push(row.clone());
        self.watch.row(row);
    }

    fn step(&mut self, what: &str, done: f64) {
        self.watch.step(what, done);
    }

    fn remark(&mut self, what: &str) {
        self.watch.remark(what);
    }
}

impl Request {
    /// The options of the experiment.
    pub(crate) fn read<T: FromArgMatches>(&self) -> Result<T, LabError> {
        T::from_arg_matches(&self.options).map_err(LabError::failed)
    }

    /// Whether the option was given, with any value.
    pub(crate) fn gives(&self, option: &str) -> bool {
        self.options.value_source(option) == Some(ValueSource::CommandLine)
    }

    /// Sets the value of an option that a quick run has unless one was given.
    pub(crate) fn shorten<T>(&self, option: &str, value: &mut T, quick: T) {
        if self.quick && !self.gives(option) {
            *value = quick;
        }
    }

    /// Refuses the value of an option for a reason that the option alone does not know.
    pub(crate) fn refused(&self, name: &'static str, why: String) -> LabError {
        let given = self.options.get_raw(name).into_iter().flatten();
        let value = given.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
        LabError::Value { name, value, why }
    }
}

#[cfg(test)]
pub(crate) mod tests;
