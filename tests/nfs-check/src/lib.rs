//! Tools that stress an NFSv3 server: random operations against a model, a race of two servers, kills of servers under
//! one load, and a comparison of ways to an object store.
//!
//! Owns: random operations and their valid answers (`random`); hostile clients beside honest ones (`hostile`); the race
//! (`race`); the kills (`kills`); the comparison (`stores`).
//! Does not own: the protocol's codec (`nfs-client`), the valid contents of a file (`reference`), starting servers.
//! Invariants: one seed gives one sequence of operations if replies come in the same order.

#![forbid(unsafe_code)]

mod failure;
pub mod hostile;
pub mod kills;
pub mod race;
pub mod random;
pub mod stores;

pub use failure::Failure;
