//! Servers killed under one load: the bytes that their clients lose or must send again, and the time they wait.
//!
//! Owns: the list of its parts.
//! Does not own: the network namespace, a guest that somebody else resets.
//! Invariants: only one server runs at a time. After a kill the client uses the handles that it had before.

mod acknowledged;
mod comparison;
mod figures;
mod killed;
mod load;
mod processes;
mod report;
mod round;

pub use comparison::{Options, run, run_with};
pub use killed::Server;

#[cfg(test)]
mod tests;
