//! A client's side of TLS for NFS, and certificates for it.
//!
//! Owns: authorities and their certificates, made anew in each test; the question for TLS, the handshake, a relay
//! between a client in the clear and its server.
//! Does not own: the client's calls (`afflux-nfs-client`).
//! Invariants: the relay ends when one of its ends does.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "for tests")]

mod certificates;
mod relay;

pub use certificates::{Authority, Issued, Purpose};
pub use relay::{PROBE, Trust, secured, tell_to_begin};
