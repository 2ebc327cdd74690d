//! Tools that use an NFSv3 server hard: random operations against a model, and a race of two servers.
//!
//! Owns: what is done at random, and what the answers may be (`random`); the race (`race`).
//! Does not own: the protocol's codec (`nfs-client`), what a file may hold (`reference`), starting servers.
//! Invariants: one seed gives one sequence of operations wherever replies come in the same order.

#![forbid(unsafe_code)]

pub mod race;
pub mod random;
