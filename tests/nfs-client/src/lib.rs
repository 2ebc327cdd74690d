//! A small NFS client for tests and measurements: blocking, one connection, many calls in flight.
//!
//! Owns: calls and replies as values. `nfs3_types`, which the server does not use, encodes those of version 3, and this
//! client's own codec those of version 4, so that a mistake of the server's codec shows.
//! Does not own: mounting, caching, retries: every call is sent as given.
//! Invariants: a malformed reply is an error and never a panic; a reply belongs to the call whose number it carries, in
//! any order of replies.

#![forbid(unsafe_code)]

mod call;
pub mod callbacks;
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
pub use connection::{Answering, Client, Envelope, Error, MOUNT, NFS, Reply, USER_ROOT, User, read_reply, take_record};
pub use load::{Kind, Load, Report, Sending};
pub use nfs3_types::nfs3::{WRITE3resok, fattr3, ftype3, nfstime3, stable_how, wcc_data, writeverf3};
pub use procedures::{Change, Creation, Node, TimeChange};
pub use results::{Consistency, CreatedObject, DirectoryEntry, Handle, Listing, ReadData, option};
pub use wire::{Fields, Malformed};

#[cfg(test)]
mod tests;
