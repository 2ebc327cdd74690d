//! The terms of a session, on which a client and the server agree when it begins.
//!
//! Owns: the number of a session, the bounds of each direction, the manner of calls to the client.
//! Does not own: sessions (`sessions`), their form for a later server (`persisted`).
//! Invariants: what is granted is no more than the client's wish, nor than this server's bounds.

use super::slots::{CACHED_REPLY_BYTES_MAX, SLOTS_MAX};
use crate::status::NfsStatus;

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
pub(crate) struct ChannelAttrs {
    pub(crate) maxrequestsize: u32,
    pub(crate) maxresponsesize: u32,
    pub(crate) maxresponsesize_cached: u32,
    pub(crate) maxoperations: u32,
    pub(crate) maxrequests: u32,
}

impl ChannelAttrs {
    /// Refuses a back channel that no call fits.
    pub(crate) fn check_back(&self) -> Result<(), NfsStatus> {
        /// A call on it is a sequence and one operation more.
        const OPERATIONS_MIN: u32 = 2;
        let is_small = self.maxrequestsize < BACK_BYTES_MIN
            || self.maxresponsesize < BACK_BYTES_MIN
            || self.maxoperations < OPERATIONS_MIN;
        if is_small { Err(NfsStatus::Toosmall) } else { Ok(()) }
    }

    /// The client's wish, as far as this server grants it. `bytes_max` is the largest record.
    pub(crate) fn granted(self, bytes_max: u32) -> Result<Self, NfsStatus> {
        if self.maxrequestsize < REQUEST_BYTES_MIN || self.maxresponsesize < REPLY_BYTES_MIN {
            return Err(NfsStatus::Toosmall);
        }
        if self.maxoperations == 0 || self.maxrequests == 0 {
            return Err(NfsStatus::Inval);
        }
        Ok(Self {
            maxrequestsize: self.maxrequestsize.min(bytes_max),
            maxresponsesize: self.maxresponsesize.min(bytes_max),
            maxresponsesize_cached: self.maxresponsesize_cached.min(CACHED_REPLY_BYTES_MAX as u32),
            maxoperations: self.maxoperations.min(OPERATIONS_MAX),
            maxrequests: self.maxrequests.min(SLOTS_MAX),
        })
    }
}

/// How a client wants to be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CallbackSecurity {
    pub(crate) program: u32,
    /// Calls carry a user's credential, and not none.
    pub(crate) names_user: bool,
}
