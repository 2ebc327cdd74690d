//! A parsed job file.
//!
//! Owns: the jobs and the warnings of a file; how like fio they have to be.
//! Does not own: the parsing of sections and options (`lines`, `apply`).

use super::complaint::Complaint;
use crate::job::Job;

/// A job file.
#[derive(Clone, Debug, Default)]
pub struct JobFile {
    /// The jobs, in order.
    pub jobs: Vec<Job>,
    /// Accepted options that only approximate fio, or cannot change the outcome; each is listed once.
    pub warnings: Vec<Complaint>,
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
