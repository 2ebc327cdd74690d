//! The result of the probe.
//!
//! Owns: the two results and their meaning.
//! Does not own: the probe.
//! Invariants: none beyond its types.

/// The uses of a store that its promises allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedUse {
    /// The store keeps the promises that a writer needs.
    ReadWrite,
    /// A writer could lose data here.
    ReadOnly {
        /// The promise that the store broke.
        why: String,
    },
}
