//! The transport and what both versions have in common on it: records, calls, who calls, replies.
//!
//! Owns: the path of bytes between a stream and a call's arguments and results; the users of calls.
//! Does not own: programs and their procedures (`v3`); which calls run when (`connection`).
//! Invariants: nothing here knows a procedure.

pub(crate) mod admission;
pub(crate) mod batch;
pub(crate) mod outbox;
pub(crate) mod record;
pub(crate) mod reply;
pub mod rpc;
pub(crate) mod xdr;

use afflux_volume::Kind;

/// The number of a kind of object: `ftype3`, which `nfs_ftype4` begins with.
pub(crate) fn file_type(kind: Kind) -> u32 {
    match kind {
        Kind::Regular => 1,
        Kind::Directory => 2,
        Kind::BlockDevice => 3,
        Kind::CharDevice => 4,
        Kind::Symlink => 5,
        Kind::Socket => 6,
        Kind::Fifo => 7,
    }
}
