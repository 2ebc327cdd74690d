//! The reasons that the simulated client gives up.
//!
//! Owns: their words, the number of attempts. Does not own: when it gives up (`nfs_client`).
//! Invariants: none.

use afflux_reference::Mismatch;
use nfs3_types::xdr_codec;

/// Most attempts to reconnect.
pub(super) const DIALS_MAX: u32 = 60;

/// The reason that the client gave up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NfsClientError {
    /// The server refused.
    #[error("{procedure}: NFS status {status}")]
    Status {
        /// The call.
        procedure: &'static str,
        /// As in RFC 1813: 5 is an I/O error, 28 is no space.
        status: u32,
    },
    /// A reply violates the protocol.
    #[error("a reply cannot be read: {what}")]
    Malformed {
        /// The malformed part.
        what: String,
    },
    /// No connection can be made any more.
    #[error("no connection after {DIALS_MAX} tries")]
    NoServer,
    /// A check of the server's data failed.
    #[error("{what}")]
    Wrong {
        /// The finding.
        what: String,
    },
}

impl NfsClientError {
    pub(super) fn malformed(what: &str) -> Self {
        Self::Malformed { what: what.to_owned() }
    }
}

impl From<xdr_codec::Error> for NfsClientError {
    fn from(error: xdr_codec::Error) -> Self {
        Self::Malformed { what: error.to_string() }
    }
}

impl From<Mismatch> for NfsClientError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Wrong { what: mismatch.what }
    }
}
