//! What an experiment is: a name, options, rows as they come, and findings at the end.
//!
//! Owns: the trait and its data; reading options by name.
//! Does not own: which experiments there are (`lib.rs`), how rows and findings are shown (`report` and
//! the command).
//! Invariants: every figure reaches the reader as a [`Row`]; findings only arrange rows that were given.

use afflux_engine::settings::did_you_mean;
use afflux_report::{Figure, Row, Table};

/// Most values in a list.
const LIST_MAX: usize = 32;

/// What a switch that was given reads as.
pub const SWITCH_ON: &str = "yes";

/// One option of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// Its name, as in `--NAME VALUE`.
    pub name: &'static str,
    /// What the value is, for the help: `RATE`, `LIST`. Empty for a switch, which is given without one and reads as
    /// [`SWITCH_ON`].
    pub value: &'static str,
    /// The value unless given, as text.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// What a run was asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Less of everything: for a look, not for a figure.
    pub quick: bool,
    /// On the hardware of this machine, beside or in place of the simulation.
    pub measured: bool,
    /// Options given, by name.
    pub given: Vec<(String, String)>,
}

/// Told while an experiment runs.
pub trait Watch {
    /// A figure is there.
    fn row(&mut self, row: &Row);
    /// What is being done, and how much of all is done (0 to 1).
    fn step(&mut self, what: &str, done: f64);
    /// Something that is to be read once, wherever the output goes: how long it will take.
    fn remark(&mut self, _: &str) {}
}

/// What an experiment found, arranged for a reader.
#[derive(Debug, Default)]
pub struct Findings {
    /// The answer to what the experiment asks, in a sentence with its figures.
    pub answer: String,
    /// The published table and ours side by side, and others.
    pub tables: Vec<Table>,
    /// Tables that few look at: on the page they are folded.
    pub details: Vec<Table>,
    /// Plots, for the page.
    pub figures: Vec<Figure>,
    /// What this shows and what it does not: a sentence or a few each.
    pub says: Vec<String>,
}

/// Why an experiment did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// There is no such experiment.
    #[error("there is no experiment '{name}'{near}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names near to it, as a question.
        near: String,
        /// All names.
        known: String,
    },
    /// There is no such option.
    #[error("{experiment} has no option '--{name}'{near}; it has {known}")]
    NoOption {
        /// The experiment.
        experiment: &'static str,
        /// What was given.
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
        /// What was given.
        value: String,
        /// What is wrong, and what would be allowed.
        why: String,
    },
    /// A part of it failed.
    #[error("{0}")]
    Failed(String),
}

/// An experiment.
pub trait Experiment: Sync {
    /// Its name, as in `afflux-lab run NAME`.
    fn name(&self) -> &'static str;
    /// What it is about, in one line.
    fn about(&self) -> &'static str;
    /// What of the run without options was fitted to what was published, and what is predicted, in one line.
    fn fitted(&self) -> &'static str;
    /// The thread that it repeats: title, who, list, date. Or where its question is from if it is from no thread.
    fn thread(&self) -> &'static str;
    /// What a reader of its page cannot know: words, names and units, as Markdown, a heading with a paragraph each.
    fn words(&self) -> &'static str;
    /// Its options.
    fn options(&self) -> &'static [OptionInfo];
    /// Whether it can be run on hardware.
    fn can_measure(&self) -> bool;
    /// Runs it; blocks, for minutes at times. Rows are given to `watch` as they come.
    ///
    /// # Errors
    /// When an option cannot be used, or a run fails.
    fn run(&self, request: &Request, watch: &mut dyn Watch) -> Result<Findings, LabError>;
}

impl Request {
    /// Whether the option was given, with any value.
    pub(crate) fn gives(&self, option: &OptionInfo) -> bool {
        self.given.iter().any(|(name, _)| name == option.name)
    }

    /// Refuses options that the experiment does not have.
    ///
    /// # Errors
    /// [`LabError::NoOption`].
    pub fn check(&self, experiment: &dyn Experiment) -> Result<(), LabError> {
        for (name, _) in &self.given {
            if !experiment.options().iter().any(|option| option.name == name) {
                let known: Vec<String> =
                    experiment.options().iter().map(|option| format!("--{}", option.name)).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let near = did_you_mean(name, experiment.options().iter().map(|option| option.name));
                return Err(LabError::NoOption { experiment: experiment.name(), name: name.clone(), near, known });
            }
        }
        Ok(())
    }

    /// The last value given for `option`, or its default.
    pub fn text<'a>(&'a self, option: &'a OptionInfo) -> &'a str {
        let given = self.given.iter().rev().find(|(name, _)| name == option.name);
        given.map_or(option.default, |(_, value)| value)
    }

    /// That value, read by `read`.
    ///
    /// # Errors
    /// [`LabError::Value`] with what `read` found wrong.
    pub fn value<T>(&self, option: &OptionInfo, read: impl Fn(&str) -> Result<T, String>) -> Result<T, LabError> {
        let text = self.text(option);
        read(text).map_err(|why| LabError::Value { name: option.name, value: text.to_owned(), why })
    }

    /// That value as a list, its parts separated by commas, each there once and read by `read`.
    ///
    /// # Errors
    /// [`LabError::Value`] with what `read` found wrong.
    pub fn list<T>(&self, option: &OptionInfo, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, LabError> {
        self.value(option, |text| {
            let parts: Vec<&str> = text.split(',').map(str::trim).collect();
            let repeats = (1..parts.len()).any(|at| parts[..at].contains(&parts[at]));
            if parts.len() > LIST_MAX || repeats {
                return Err(format!("at most {LIST_MAX} values, each once"));
            }
            parts.into_iter().map(&read).collect()
        })
    }
}

#[cfg(test)]
mod tests;
