//! The error of a failed setup of hardware.
//!
//! Owns: the error. Does not own: its causes.
//! Invariants: it names the failed step and the host's message.

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
