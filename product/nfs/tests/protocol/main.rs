//! The server against a real volume over a real directory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]

mod acls;
mod compounds;
mod data;
mod delegations;
mod envelope;
mod golden;
mod hostile;
mod kept;
mod listing;
mod locks;
mod modes;
mod names;
mod objects;
mod outliving;
mod peer;
mod resets;
mod robustness;
mod sockets;
mod tls;
mod trust;
mod waits;
mod world;
mod xattrs;
