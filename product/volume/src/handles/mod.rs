//! From handles and identities to objects in memory.
//!
//! Owns: the ways back from a handle to its object, bringing objects into memory, making room for them.
//! Does not own: names (`names`), the state of objects (`objects`).
//! Invariants: a handle names one object while that lives, and nothing afterwards.

mod admit;
pub(crate) mod adopt;
mod follow;
pub(crate) mod hold;
mod keep;
mod outlive;
mod resolve;
mod search;
