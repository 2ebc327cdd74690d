//! The seam to trees of names: the interface of a world's tree, and the plain values that pass.
//!
//! Owns: the trait, attributes, the form of access control lists, identities, the rules for names, the form of
//! results, the window for listing a directory, the resulting listing.
//! Does not own: any state of objects (`objects`), the host's calls (worlds).
//! Invariants: nothing here knows of the volume, the engine's pages or a protocol. Plain values, no locks.

pub mod acl_form;
pub(crate) mod attributes;
pub(crate) mod caller;
pub(crate) mod directory;
pub(crate) mod identity;
pub(crate) mod listing;
pub(crate) mod names;
pub(crate) mod pending;
