//! Complaints about a job file.
//!
//! Owns: their form.
//! Does not own: their texts, which stand where a line or an option is refused.

use std::fmt;

use crate::job::SourceLine;

/// An error or a warning, and its line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}:{}: {what}", position.file, position.line)]
pub struct Complaint {
    /// Its line.
    pub position: SourceLine,
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
