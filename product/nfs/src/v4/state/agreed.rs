//! The terms of a session, on which a client and the server agree when it begins.
//!
//! Owns: the number of a session, the bounds of each direction, the manner of calls to the client.
//! Does not own: sessions (`sessions`), their form for a later server (`kept`).
//! Invariants: what is granted is no more than the client's wish, nor than this server's bounds.

use super::slots::{KEPT_BYTES_MAX, SLOTS_MAX};
use crate::status::Status;

/// Most operations of a compound.
pub(crate) const OPERATIONS_MAX: u32 = 64;
/// The least that a client may ask for: a SEQUENCE with its headers, and two operations.
const REQUEST_BYTES_MIN: u32 = 256;
const REPLY_BYTES_MIN: u32 = 256;
const BACK_BYTES_MIN: u32 = 128;

/// The number of a session: random, so that nobody guesses it.
pub(crate) type SessionId = [u8; 16];

/// The bounds that both sides agree on for one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Channel {
    pub(crate) request_bytes_max: u32,
    pub(crate) reply_bytes_max: u32,
    pub(crate) kept_bytes_max: u32,
    pub(crate) operations_max: u32,
    pub(crate) calls_max: u32,
}

impl Channel {
    /// Refuses a back channel that no call fits.
    pub(crate) fn check_back(&self) -> Result<(), Status> {
        /// A call on it is a sequence and one operation more.
        const OPERATIONS_MIN: u32 = 2;
        let is_small = self.request_bytes_max < BACK_BYTES_MIN
            || self.reply_bytes_max < BACK_BYTES_MIN
            || self.operations_max < OPERATIONS_MIN;
        if is_small { Err(Status::TooSmall) } else { Ok(()) }
    }

    /// The client's wish, as far as this server grants it. `bytes_max` is the largest record.
    pub(crate) fn granted(self, bytes_max: u32) -> Result<Self, Status> {
        if self.request_bytes_max < REQUEST_BYTES_MIN || self.reply_bytes_max < REPLY_BYTES_MIN {
            return Err(Status::TooSmall);
        }
        if self.operations_max == 0 || self.calls_max == 0 {
            return Err(Status::Invalid);
        }
        Ok(Self {
            request_bytes_max: self.request_bytes_max.min(bytes_max),
            reply_bytes_max: self.reply_bytes_max.min(bytes_max),
            kept_bytes_max: self.kept_bytes_max.min(KEPT_BYTES_MAX as u32),
            operations_max: self.operations_max.min(OPERATIONS_MAX),
            calls_max: self.calls_max.min(SLOTS_MAX),
        })
    }
}

/// How a client wants to be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Calling {
    pub(crate) program: u32,
    /// Calls carry a user's credential, and not none.
    pub(crate) names_user: bool,
}
