//! Sockets for protocol machines: listeners, connections, serving.
//!
//! Owns: the module's parts; see each.
//! Does not own: protocols: a connection moves bytes between a socket and a `afflux_frontend::Machine`.
//! Invariants: page frames go to the kernel where they are, without a copy, and are let go when sent.

mod connection;
mod crowd;
mod listener;
mod origin;
mod room;
mod serve;
mod socket;

pub use crowd::{RefusedConnection, ServeLimits};
pub use listener::{ListenError, Listener};
pub use serve::{CONNECTIONS_MAX, PeerCounts, ServeCounts, ServeHandle, peers_are_identified, serve};

#[cfg(test)]
mod tests;
