//! From handles and identities to objects in memory.
//!
//! Owns: the order of the ways back from a handle to its object, bringing objects into memory, making room for them.
//! Does not own: searches where the host opens nothing by handle (`search`), names (`names`), the state of objects
//! (`objects`).
//! Invariants: a handle names one object while that lives, and nothing afterwards.

mod admit;
pub(crate) mod adopt;
pub(crate) mod hold;
mod outlive;
mod resolve;
