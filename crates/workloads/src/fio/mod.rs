//! fio job files: text in, jobs out.
//!
//! Owns: the syntax (sections, `[global]`, `include`, `${VAR}`), fio's rules for numbers, which
//! options there are and which of them the simulator knows.
//! Does not own: files and the environment, which the caller brings; running jobs.
//! Invariants: pure. Of the options that are supported, what fio 3.33 rejects is rejected, and what it
//! accepts is accepted with the same meaning, unless it drops a part of it silently. What fio knows and
//! the simulator does not is an error, unless it cannot change what the cache does.

mod apply;
mod lines;
mod numbers;
mod options;

use crate::job::{Job, Place};

/// What the parser asks its caller for.
pub trait Surroundings {
    /// The text of a file that `including` names in an `include` line, and the name to report it by.
    ///
    /// # Errors
    /// Why there is no such text.
    fn include(&mut self, path: &str, including: &str) -> Result<(String, String), String>;

    /// The value of an environment variable.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// A job file.
#[derive(Clone, Debug, Default)]
pub struct JobFile {
    /// The jobs, in order.
    pub jobs: Vec<Job>,
    /// Options that were left out since they cannot change the outcome.
    pub warnings: Vec<Complaint>,
}

/// What is wrong, or strange, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{}: {what}", place.file, place.line)]
pub struct Complaint {
    /// Where.
    pub place: Place,
    /// In words, with the option, the value and what is allowed.
    pub what: String,
}

/// Parses the job file `text`, called `name` in messages.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> Result<JobFile, Complaint> {
    lines::sections(name, text, surroundings).and_then(apply::jobs)
}

#[cfg(test)]
mod tests;
