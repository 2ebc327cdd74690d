//! A small NFS client for tests and measurements: blocking, one connection, many calls in flight.
//!
//! Owns: its own codec of the protocol, independent of the server's, so that a mistake on one side shows on the other.
//! Does not own: mounting, caching, retries: every call is sent as given.
//! Invariants: a malformed reply is an error and never a panic; a reply belongs to the call whose number it carries, in
//! any order of replies.

#![forbid(unsafe_code)]

mod call;
pub mod check;
mod connection;
mod load;
mod procedures;
mod results;
pub mod sessions;
pub mod slots;
pub mod status;
mod transfer;
mod wire;

pub use call::{Answer, Call};
pub use connection::{Client, Envelope, Error, MOUNT, NFS, Reply, USER_ROOT, User, read_reply, take_record};
pub use load::{Kind, Load, Report, Sending};
pub use procedures::{Change, Creation, Node, TimeChange};
pub use results::{
    Access, Attributes, Committed, Consistency, CreatedObject, DirectoryEntry, FileSystem, Handle, Limits, Listing,
    ReadData, Space, Stability, Time, Written,
};
pub use wire::{Fields, Malformed};

#[cfg(test)]
mod tests;
