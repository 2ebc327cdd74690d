//! The C interface of the library `afflux`: what `afflux.h` declares.
//!
//! Owns: handles as C has them, memory as C gives it, codes and texts of errors, the queue for calls in flight.
//! Does not own: the cache (`afflux`); the header, which is made from these sources (`cargo xtask docs`).
//! Invariants: no panic crosses the border. What can be told from a handle's number alone (never one, closed, of another
//! kind, of the parent process) is an error and nothing else. The handles and the number of the process are the only
//! global state.
//!
//! What a C programmer should know stands in the header.

#![allow(clippy::missing_safety_doc, reason = "these are documented for C, whose calls promise what the header says")]
#![cfg_attr(all(test, loom), allow(dead_code, reason = "what only calls use"))]

mod border;
mod code;
mod handle;
mod process;

// A model of handles needs none of the calls, whose tables are made before it runs.
#[cfg(not(all(test, loom)))]
mod cache;
#[cfg(not(all(test, loom)))]
mod file;
#[cfg(not(all(test, loom)))]
mod memory;
#[cfg(not(all(test, loom)))]
mod pages;
#[cfg(not(all(test, loom)))]
mod queue;

pub use border::afflux_last_error;
pub use code::*;

#[cfg(not(all(test, loom)))]
pub use {cache::*, file::*, pages::*, queue::*};
