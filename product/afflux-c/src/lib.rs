//! The C interface of the library `afflux`, which `afflux.h` declares.
//!
//! Owns: handles, memory, codes and texts of errors in C's form; the queue for calls in flight.
//! Does not own: the cache (`afflux`); the header, which is made from these sources (`cargo xtask docs`).
//! Invariants: no panic crosses the border. A bad handle (never opened, closed, of another kind, of the parent process)
//! is an error and has no other effect. The handles and the number of the process are the only global state.
//!
//! The header has the documentation for C programmers.

#![allow(clippy::missing_safety_doc, reason = "the header documents these calls for C")]
#![cfg_attr(all(test, loom), allow(dead_code, reason = "what only calls use"))]

mod border;
mod code;
mod handle;
mod process;

// A model of handles needs none of the calls; their tables are made before it runs.
#[cfg(not(all(test, loom)))]
mod cache;
#[cfg(not(all(test, loom)))]
mod file;
#[cfg(not(all(test, loom)))]
mod memory;
#[cfg(not(all(test, loom)))]
mod order;
#[cfg(not(all(test, loom)))]
mod pages;
#[cfg(not(all(test, loom)))]
mod queue;

pub use border::afflux_last_error;
pub use code::*;

#[cfg(not(all(test, loom)))]
pub use {cache::*, file::*, order::*, pages::*, queue::*};
