//! One object's bytes and attributes: reading, changing, making durable.
//!
//! Owns: the calls about what an object is, whatever its names.
//! Does not own: pages and writing back (the engine), what clients are told (`objects::inode`).
//! Invariants: what was acknowledged is told to every caller at once, on the host or not.

mod attributes;
mod permission;
pub(crate) mod read_write;
mod sync;
