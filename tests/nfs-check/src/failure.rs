//! The reason that a race or a comparison ended early.
//!
//! Owns: its kinds, its words.
//! Does not own: the faults themselves.
//! Invariants: a failure names the step.

/// The reason that a race ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The host of this machine took so much time that no figure of speed holds.
    #[error(
        "the host took {per_mille} thousandths of the processors' time, so no figure holds; race again when it is quiet"
    )]
    Stolen {
        /// Thousandths of the processors' time.
        per_mille: u64,
    },
    /// A call failed.
    #[error("{what}: {error}")]
    Call {
        /// The step that failed.
        what: String,
        /// The error.
        error: afflux_nfs_client::Error,
    },
    /// A step on the host failed.
    #[error("{what}: {error}")]
    Host {
        /// The step that failed.
        what: String,
        /// The error.
        error: std::io::Error,
    },
    /// A server did not start.
    #[error("{0}")]
    Server(String),
}

pub(crate) fn host(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
    let what = what.into();
    |error| Failure::Host { what, error }
}

pub(crate) fn call(what: impl Into<String>) -> impl FnOnce(afflux_nfs_client::Error) -> Failure {
    let what = what.into();
    |error| Failure::Call { what, error }
}
