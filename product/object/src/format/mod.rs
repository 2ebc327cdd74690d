//! The formats of what is stored.
//!
//! Owns: names and bytes of segments, keys and values of records, errors in them.
//! Does not own: the time at which either is written.
//! Invariants: numbers are big-endian. Each decoder accepts exactly the bytes that its encoder makes.

pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod extent;
pub(crate) mod fields;
pub(crate) mod inode;
pub(crate) mod pieces;
pub(crate) mod records;
pub(crate) mod segment;
pub(crate) mod segment_id;
#[cfg(test)]
mod tests;
