//! TLS between a protocol machine and the world that moves its bytes.
//!
//! A client of a server with TLS begins in the clear, asks for TLS, and goes on with a handshake over the same
//! connection (RFC 9289). So [`TlsMachine`] stands in front of the protocol's machine: it passes bytes on until that
//! machine has asked its peer to begin, and then encrypts and decrypts them.
//!
//! Owns: handshakes and their permits, encryption, which clients are let in by their certificates, the list of
//! connections with TLS.
//! Does not own: files (the command reads them), sockets, protocols.
//! Invariants: TLS is of version 1.3. Nothing that came before a handshake counts as sent by the peer that the
//! handshake proves. No session is resumed, so each connection proves its certificate anew.

#![forbid(unsafe_code)]

mod identity;
mod machine;
mod permits;
mod server;

pub use identity::{BadIdentity, TlsIdentity};
pub use machine::TlsMachine;
pub use server::{SecuredPeer, TlsServer};
