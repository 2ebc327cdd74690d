//! A small NFSv3 client for tests and measurements: blocking, one connection, many calls in flight.
//!
//! Owns: its own reading and writing of the protocol, independent of the server's, so that a mistake
//! made on one side shows on the other.
//! Does not own: mounting, caching, retrying: every call goes out as it is asked for.
//! Invariants: a reply that is not what the protocol says is an error and never a panic; a reply
//! belongs to the call whose number it carries, in whatever order replies come.

#![forbid(unsafe_code)]

mod call;
pub mod check;
mod connection;
mod load;
mod names_load;
mod procedures;
mod results;
mod transfer;
mod wire;

pub use call::{Answer, Call};
pub use connection::{Client, Envelope, Error, MOUNT, NFS, Reply, USER_ROOT, User, read_reply, take_record};
pub use load::{Kind, Load, Report, Sending};
pub use names_load::{NamesLoad, StepRate};
pub use procedures::{Change, Creation, Node, TimeChange};
pub use results::{
    Access, Attributes, Committed, Consistency, Entry, FileSystem, Handle, Limits, Listing, Made, ReadData, Space,
    Stability, Time, Written,
};
pub use wire::Malformed;

#[cfg(test)]
mod tests;
