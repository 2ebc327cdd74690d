//! From handles and identities to objects in memory.
//!
//! Owns: the ways back from a handle to its object, bringing objects into memory, making room for them.
//! Does not own: names (`names`), what is kept of objects (`objects`).
//! Invariants: a handle names one object for as long as that lives, and nothing afterwards.

mod admit;
mod follow;
mod keep;
mod resolve;
mod search;
