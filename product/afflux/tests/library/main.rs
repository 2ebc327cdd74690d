//! The library as its users meet it, on real files.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

mod bad_input;
mod block_device;
mod cancelled;
mod coherence;
mod dependencies;
mod endings;
mod faults;
mod foreign_wakers;
mod hung_mount;
mod model;
mod ordering;
mod runtimes;
