//! Runs programs of the host to their end.
//!
//! Owns: running a program and reading its output; the error of a failed setup. Does not own: the choice of programs.
//! Invariants: an error names the failed step and the host's message, here the program, its arguments and its text.

use std::process::Command;

/// The reason why hardware could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct HardwareError {
    /// The failed step, and the host's message.
    pub what: String,
}

impl From<std::io::Error> for HardwareError {
    fn from(error: std::io::Error) -> Self {
        Self { what: error.to_string() }
    }
}

/// Runs a program; its output without the last line end.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, HardwareError> {
    let line = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| HardwareError { what: format!("'{}' could not be started: {error}", line()) })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(HardwareError { what: format!("'{}' failed: {}", line(), said.trim()) });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Runs a program that takes something down. Ignores a failure, since the caller could do nothing about it.
pub(crate) fn run_down(program: &str, arguments: &[&str]) {
    let _ = run(program, arguments);
}
