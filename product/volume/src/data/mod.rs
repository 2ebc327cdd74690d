//! One object's bytes and attributes: reading, changing, making durable.
//!
//! Owns: the calls about an object itself, independent of its names.
//! Does not own: pages and writeback (the engine), the values reported to clients (`objects::inode`).
//! Invariants: every caller sees an acknowledged change at once, whether it is on the host or not.

mod attributes;
mod changing;
pub(crate) mod clones;
pub(crate) mod holes;
pub(crate) mod locking;
mod permission;
pub(crate) mod read_write;
mod sync;
