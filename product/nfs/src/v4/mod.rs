//! Versions 4.1 and 4.2 of NFS (RFC 8881, RFC 7862): compounds of operations, in sessions.
//!
//! Owns: the state that all connections share; the way of a compound from a record to its reply.
//! Does not own: the transport (`wire`), the volume's operations (`operations` above), version 3.
//! Invariants: this folder and `v3` never import each other. The lock of the state is held for look-ups alone, and
//! never over an await; a session's slots and its way back to the client have locks of their own below it.

mod attributes;
mod back_channel;
pub(crate) mod client_info;
mod client_state;
mod codec;
pub(crate) mod compound;
pub(crate) mod counts;
pub(crate) mod course;
mod denied;
pub(crate) mod grace;
mod kept_calls;
mod locking;
mod operations;
mod pseudo_root;
mod recorded;
pub(crate) mod recovery;
mod revocation;
pub(crate) mod service;
mod shown;
mod state;

pub(crate) use service::Service;

/// Reads all operations of a compound whose arguments start at `at`, as far as that needs no volume. For fuzzers: it
/// returns for any bytes.
pub(crate) fn is_decodable(record: &[u8], at: usize) -> bool {
    let Ok(head) = codec::head(record, at) else { return false };
    let (mut at, mut operation) = (head.at, codec::CompoundOperation::Unsupported);
    for _ in 0..head.count {
        match codec::read_operation(record, at, head.minor, &mut operation) {
            Ok((_, Ok(next))) => at = next,
            _ => return false,
        }
    }
    true
}
