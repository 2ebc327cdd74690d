//! The seam to trees of names: what a world's tree must offer, and the plain values that pass.
//!
//! Owns: the trait, attributes, identities, which bytes are a name, how results come, the window in which a directory is listed,
//! the listing that comes of it.
//! Does not own: anything that is kept of objects (`objects`), the host's calls (worlds).
//! Invariants: nothing here knows of the volume, the engine's pages or a protocol. Plain values, no locks.

pub(crate) mod attributes;
pub(crate) mod caller;
pub(crate) mod directory;
pub(crate) mod identity;
pub(crate) mod listed;
pub(crate) mod names;
pub(crate) mod pending;
pub(crate) mod window;
