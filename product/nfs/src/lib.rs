//! NFSv3 (RFC 1813) and MOUNT, NFSv4.1 and 4.2 (RFC 8881, RFC 7862), over RPC (RFC 5531), as a pure protocol machine:
//! bytes in, segments out.
//!
//! Owns: the protocol, the calls in progress of each connection, the replies cached against repetition.
//! Does not own: sockets, threads, clocks (worlds move the bytes and poll); files (the volume).
//! Invariants: for any bytes, nothing panics, nothing grows beyond its bound, and every call that can be read is
//! answered once. A machine that cannot keep up stops wanting input; it never answers a call with "come back later".
//!
//! Both programs and all versions are served on one connection, so that one port without a port mapper is enough. A
//! [`Server`] has the state of all connections; [`Server::connection`] returns the [`ProtocolMachine`] of one.
//!
//! [`ProtocolMachine`]: afflux_frontend::ProtocolMachine

#![forbid(unsafe_code)]

mod call_gate;
mod calls;
mod connection;
pub mod limits;
mod operations;
mod server;
mod status;
mod steps;
mod v3;
mod v4;
mod wire;
mod workers;

pub use connection::Connection;
pub use limits::{KNOBS, NfsKnob};
pub use server::{Server, TlsUse};
pub use v3::reply_cache::ENTRIES_MAX as KEPT_REPLIES_MAX;
pub use v3::side_protocols::MOUNTS_MAX;
pub use v4::client_info::{ClientId, ClientInfo, ClientStateInfo, ClientStateKind, ClientStatus, DelegationStatus};
pub use v4::grace::{ClientList, ListChange, UNKNOWN_CLIENTS};
pub use v4::recovery::LostOpen;
pub use v4::service::{ClientMemory, TellLost};
pub use wire::admission::{AdmittedPeers, Network, Rules, Squash};
pub use wire::record::{FRAGMENTS_MAX, RECORD_BYTES_MAX};
pub use wire::rpc;

/// Reads `record`, one record without its mark, as far as that needs no volume: header, credentials and arguments.
/// Returns whether it contains a call with readable arguments. For fuzzers: it returns for any bytes.
pub fn is_decodable(record: &bytes::Bytes) -> bool {
    let rpc::Incoming::Call(call) = rpc::parse(record) else {
        return false;
    };
    if call.version == 4 {
        let claimed = rpc::claim(&record[call.credential.0..call.credential.1]);
        return claimed.is_ok() && v4::is_decodable(record, call.arguments_at);
    }
    if (call.procedure as usize) < v3::arguments::PROCEDURES.len() {
        let claimed = rpc::claim(&record[call.credential.0..call.credential.1]);
        claimed.is_ok() && v3::arguments::Arguments::decode(call.procedure, record, call.arguments_at).is_ok()
    } else {
        false
    }
}

#[cfg(test)]
mod tests;
