//! The lock that is in the way of a refused one, as a client is told.
//!
//! Owns: its form on the wire.
//! Does not own: the lock (the volume), the refusal (`operations::locks`).
//! Invariants: a lock without an end has the length of all ones.

use afflux_volume::{Lock, LockMode};

use crate::wire::xdr::Writer;

/// The lock in the way of one that was refused.
pub(super) struct Denied {
    pub(super) lock: Lock,
    /// The client and its name for the owner, if it is one of version 4.
    pub(super) owner: (u64, Box<[u8]>),
}

impl Denied {
    /// Writes what follows the status.
    pub(super) fn write(&self, writer: &mut Writer) {
        const READ: u32 = 1;
        const WRITE: u32 = 2;
        writer.u64(self.lock.span.first());
        writer.u64(self.lock.span.length());
        writer.u32(if self.lock.mode == LockMode::Exclusive { WRITE } else { READ });
        writer.u64(self.owner.0);
        writer.opaque(&self.owner.1);
    }
}
