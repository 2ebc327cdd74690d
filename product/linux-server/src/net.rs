//! Sockets for protocol machines: listeners, connections, serving.
//!
//! Owns: nothing itself; see its modules.
//! Does not own: protocols: a connection moves bytes between a socket and a `afflux_frontend::ProtocolMachine`.
//! Invariants: page frames go to the kernel in place, without a copy, and are released when sent.

mod connection;
mod crowd;
mod listener;
mod origin;
mod quota;
mod serve;
mod service;
mod socket;

pub use crowd::{Bound, RefusedConnection, ServeLimits};
pub use listener::{ListenError, Listener};
pub use serve::{peers_are_identified, serve};
pub use service::{CONNECTIONS_MAX, PeerCounts, ServeCounts, ServeHandle};

#[cfg(test)]
mod tests;
