//! The figures of one kill.
//!
//! Owns: their meaning.
//! Does not own: the measurement (`round`), medians and rows (`report`).
//! Invariants: a byte counts once, however often it was written.

use std::time::Duration;

use super::acknowledged::Lost;

/// The figures of one kill. Bytes are those of the acknowledged contents of all files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Without a COMMIT at the kill.
    pub(super) unstable: u64,
    pub(super) committed: u64,
    /// Missing or wrong bytes among these after the restart.
    pub(super) lost: Lost,
    /// Missing or wrong on the disk between the end and the start; `None` if nobody could look.
    pub(super) off_disk: Option<Lost>,
    pub(super) verifier_changed: bool,
    /// From the signal to the first answer to NULL, and to the first success of READ and WRITE by an old handle.
    pub(super) null: Duration,
    pub(super) read: Duration,
    pub(super) write: Duration,
}

impl Figures {
    /// Bytes that a client must send again: a new verifier says that they may be gone.
    pub(super) fn again(&self) -> u64 {
        if self.verifier_changed { self.unstable } else { 0 }
    }
}
