//! Replays a trace: repeats recorded calls at their recorded times.
//!
//! Owns: parsing a trace from text and from the format of `afflux trace record`.
//! Does not own: the files of a run and its waiting (`simulation::replaying`), recording (the front end).
//! Invariants: every parsed trace can be replayed. An error has its line or record and the reason.

mod calls;
mod csv;
mod recorded;

pub use calls::{CALL_BYTES_MAX, CALLS_MAX, FILE_BYTES_MAX, FILES_MAX, Trace, TraceError, TracedCall, TracedOperation};
pub use recorded::{RECORD_BYTES, encode, end};

impl Trace {
    /// Parses a trace in either format.
    ///
    /// # Errors
    /// For the first line or record that is malformed.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        if recorded::is_recorded(bytes) { recorded::read(bytes) } else { csv::read(bytes) }
    }
}

#[cfg(test)]
mod tests;
