//! Why slow hardware could not be had.
//!
//! Owns: the error. Does not own: when it happens.
//! Invariants: it says what was tried and what the host said.

/// Why hardware could not be had.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct HardwareError {
    /// What was tried and what the host said.
    pub what: String,
}

impl From<std::io::Error> for HardwareError {
    fn from(error: std::io::Error) -> Self {
        Self { what: error.to_string() }
    }
}
