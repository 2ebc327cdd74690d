//! A place in the tree.
//!
//! Owns: the directory and the name of an entry.
//! Does not own: which places are remembered (`search`).
//! Invariants: a plain value. The object may have left the place.

use bytes::Bytes;

use super::identity::Identity;

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) parent: Identity,
    pub(crate) name: Bytes,
}
