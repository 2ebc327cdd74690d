//! Parses fio job files into jobs.
//!
//! Owns: the syntax (sections, `[global]`, `include`, `${VAR}`, arithmetic), fio's rules for numbers, the lists of
//! options and engines and of those that the simulator knows.
//! Does not own: files and the environment, which the caller provides; running jobs.
//! Invariants: pure. For supported options the parser rejects every value that fio 3.33 rejects. The parser accepts
//! every value that fio accepts, with fio's meaning, unless fio silently drops a part of the value. An option that fio
//! knows and the simulator does not is an error, unless it cannot change the behaviour of a cache and a disk. All
//! errors of a file are reported at once.

mod apply;
mod arithmetic;
mod draft;
mod engines;
mod lines;
mod numbers;
mod options;
mod values;

use std::fmt;

use crate::job::{Job, SourceLine};

/// A file that another one includes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Included {
    /// The name used in reports.
    pub name: String,
    /// The file's text.
    pub text: String,
}

/// The parser's view of its surroundings.
pub trait Surroundings {
    /// The file that `including` names in an `include` line.
    ///
    /// # Errors
    /// The reason that there is no such text.
    fn include(&mut self, path: &str, including: &str) -> Result<Included, String>;

    /// The value of an environment variable.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// The surroundings of a job file that stands alone: no variable has a value, and includes fail for this reason.
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
    /// Accepted options that only approximate fio, or cannot change the outcome; each is listed once.
    pub warnings: Vec<Complaint>,
}

/// An error or a warning, and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{}: {what}", place.file, place.line)]
pub struct Complaint {
    /// Its place.
    pub place: SourceLine,
    /// The text, with the option, the value and the allowed values.
    pub what: String,
}

/// All errors of a file, one per line.
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

/// The required likeness to fio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Likeness {
    /// The same calls.
    #[default]
    Same,
    /// Approximations are accepted, with a warning.
    Near,
}

/// Parses the job file `text`, called `name` in messages.
///
/// # Errors
/// All errors of the file.
pub fn parse(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> Result<JobFile, Complaints> {
    parse_as(name, text, surroundings, Likeness::Same)
}

/// Like [`parse`], with this likeness to fio.
///
/// # Errors
/// Those of [`parse`].
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

/// The job of these options, which are separated by spaces.
#[cfg(test)]
pub(crate) fn job_of(options: &str) -> Job {
    let text = format!("[x]\n{}\n", options.replace(' ', "\n"));
    let parsed = parse("test.fio", &text, &mut Alone("there is none"));
    parsed.unwrap_or_else(|complaints| panic!("{complaints}")).jobs.remove(0)
}

#[cfg(test)]
mod tests;
