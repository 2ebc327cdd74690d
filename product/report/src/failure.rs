//! Why the command did not succeed.
//!
//! Owns: the difference between failure and wrong use, and their exit codes.
//! Does not own: the wording, which the failing code chooses.
//! Invariants: 1 is failed, 2 is wrong use.

use std::fmt::{self, Display};
use std::process::ExitCode;

/// The result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

/// A failure with the text to show.
#[derive(Debug)]
pub enum Failure {
    /// The command was right and could not be carried out.
    Failed(String),
    /// The command, a setting or the configuration makes no sense.
    WrongUse(String),
}

impl Failure {
    /// The command was right and could not be carried out, because of `text`.
    pub fn failed(text: impl Display) -> Self {
        Self::Failed(text.to_string())
    }

    /// The command makes no sense, because of `text`.
    pub fn wrong_use(text: impl Display) -> Self {
        Self::WrongUse(text.to_string())
    }

    /// Puts a flag's name in front of the text of a wrong use.
    pub fn within(self, flag: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(text),
            Self::WrongUse(text) => Self::WrongUse(format!("{flag}: {text}")),
        }
    }

    /// 1 for a failure, 2 for wrong use.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Failed(_) => ExitCode::FAILURE,
            Self::WrongUse(_) => ExitCode::from(2),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::WrongUse(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// The step of a command that an error ends.
pub trait OrFailed<T> {
    /// Fails with `text` and the error.
    fn or_failed(self, text: impl Display) -> Outcome<T>;
}

impl<T, E: Display> OrFailed<T> for Result<T, E> {
    fn or_failed(self, text: impl Display) -> Outcome<T> {
        self.map_err(|error| Failure::failed(format_args!("{text}: {error}")))
    }
}
