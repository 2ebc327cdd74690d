//! Locks on files: byte ranges, share reservations, and the queues for them, for all front ends together.
//!
//! Owns: the holders of a file's bytes, the denied uses of a file, the waiting owners; the bounds of each.
//! Does not own: the front ends' names for owners, leases of clients (a [`LockHolder`] reports them), the moment of a
//! tick.
//! Invariants: locks bind only those who ask for locks: no read and no write asks here. No two owners have modes that
//! exclude each other on one byte. Waiting owners get bytes in the order of their coming. A waiter is woken and a
//! holder is asked without waiting; a waiter is woken and the host is called outside the lock. While clients of an
//! earlier server may reclaim their locks, no front end gets a new one (`table/tests.rs`).

mod asking;
mod holders;
mod host;
mod index;
mod of_file;
mod owner;
mod queue;
mod ranges;
mod shares;
mod table;

pub use holders::{
    FILE_GROUP_LOCKS_MAX, FILE_LOCKS_MAX, GROUP_LOCKS_MAX, HostQuestion, LOCKS_MAX, LockHolder, LockRefusal,
};
pub use host::{HostLocks, HostRefusal};
pub use owner::{HolderId, Lock, LockFamily, LockMode, LockOwner, Span};
pub use queue::LockWaker;
pub use shares::{Share, ShareRefusal};
pub use table::{HeldBy, Locks};
