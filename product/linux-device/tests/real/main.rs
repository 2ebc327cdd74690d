//! The engine on this platform: real threads, files, clocks and disks. One program: each would compile the engine anew.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod completions;
mod engine_threads;
mod failing_disk;
mod pieces;
mod races;
mod read_in_call;
mod streams;
mod sync_in_call;
