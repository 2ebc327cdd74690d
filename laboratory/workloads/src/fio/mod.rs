//! fio job files: text in, jobs out.
//!
//! Owns: the syntax (sections, `[global]`, `include`, `${VAR}`, arithmetic), fio's rules for numbers, which
//! options and engines there are and which of them the simulator knows.
//! Does not own: files and the environment, which the caller brings; running jobs.
//! Invariants: pure. Of the options that are supported, what fio 3.33 rejects is rejected, and what it
//! accepts is accepted with the same meaning, unless it drops a part of it silently. What fio knows and
//! the simulator does not is an error, unless it cannot change what a cache and a disk do. All that is wrong with a
//! file is told at once.

mod apply;
mod arithmetic;
mod draft;
mod engines;
mod lines;
mod numbers;
mod options;
mod values;

use std::fmt;

use crate::job::{Job, Place};

/// A file that another one includes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Included {
    /// The name to report it by.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// What the parser asks its caller for.
pub trait Surroundings {
    /// The file that `including` names in an `include` line.
    ///
    /// # Errors
    /// Why there is no such text.
    fn include(&mut self, path: &str, including: &str) -> Result<Included, String>;

    /// The value of an environment variable.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// The surroundings of a job file that stands by itself: no variable has a value, and nothing is included, for this
/// reason.
pub struct Alone(pub &'static str);

impl Surroundings for Alone {
    fn include(&mut self, _: &str, _: &str) -> Result<Included, String> {
        Err(self.0.to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// A job file.
#[derive(Clone, Debug, Default)]
pub struct JobFile {
    /// The jobs, in order.
    pub jobs: Vec<Job>,
    /// What was taken and is not quite what fio does, or cannot change the outcome: each once.
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

/// All that is wrong with a file, a line each.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Complaints(pub Vec<Complaint>);

impl fmt::Display for Complaints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, complaint) in self.0.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(out, "{end}{complaint}")?;
        }
        Ok(())
    }
}

/// How near to fio a job has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Likeness {
    /// The same calls.
    #[default]
    Same,
    /// What is only nearly the same is taken, with a warning.
    Near,
}

/// Parses the job file `text`, called `name` in messages.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> Result<JobFile, Complaints> {
    parse_as(name, text, surroundings, Likeness::Same)
}

/// The same, as near to fio as is asked for.
///
/// # Errors
/// As [`parse`].
pub fn parse_as(
    name: &str,
    text: &str,
    surroundings: &mut dyn Surroundings,
    likeness: Likeness,
) -> Result<JobFile, Complaints> {
    let (sections, mut wrong) = lines::sections(name, text, surroundings);
    let file = apply::jobs(sections, likeness, &mut wrong);
    if wrong.is_empty() { Ok(file) } else { Err(Complaints(wrong)) }
}

/// The job that these options make; a space ends each.
#[cfg(test)]
pub(crate) fn job_of(options: &str) -> Job {
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let parsed = parse("test.fio", &text, &mut Alone("there is none"));
    parsed.unwrap_or_else(|complaints| panic!("{complaints}")).jobs.remove(0)
}

#[cfg(test)]
mod tests;
