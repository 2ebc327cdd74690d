//! The reasons that checks fail.
//!
//! Owns: the kinds of failures, their collection over many attempts.
//! Does not own: the rules.

use crate::connection::Error;
use crate::wire::Malformed;

/// The reason that a check failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server breaks the rule.
    #[error("{0}")]
    Broken(String),
    /// A call that is not part of the rule failed.
    #[error(transparent)]
    Call(#[from] Error),
    /// The target lacks something that the check needs.
    #[error("needs {0}")]
    Missing(&'static str),
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Self {
        Self::Call(malformed.into())
    }
}

/// Fails with the text of `said` unless `holds`.
pub(super) fn demand(holds: bool, said: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Broken(said())) }
}

/// The faults among many attempts.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<String>);

impl Faults {
    /// Notes a call whose status is not allowed.
    pub(super) fn expect<T>(&mut self, what: &str, result: Result<T, Error>, allowed: &[u32]) -> Result<(), Failure> {
        let status = status_of(result)?;
        if !allowed.contains(&status) {
            self.0.push(format!("{what}: status {status}, not {allowed:?}"));
        }
        Ok(())
    }

    pub(super) fn demand(&mut self, holds: bool, said: impl FnOnce() -> String) {
        if !holds {
            self.0.push(said());
        }
    }

    pub(super) fn end(self) -> Result<(), Failure> {
        demand(self.0.is_empty(), || self.0.join("; "))
    }
}

/// The status of a call that should fail; 0 if it succeeded.
pub(super) fn status_of<T>(result: Result<T, Error>) -> Result<u32, Failure> {
    match result {
        Ok(_) => Ok(0),
        Err(Error::Status { status, .. }) => Ok(status),
        Err(error) => Err(error.into()),
    }
}
