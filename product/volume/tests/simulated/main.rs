//! Rules of the volume, each shown in virtual time on simulated disks and trees.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod client;
mod clients;
mod held;
mod listing;
mod stale_handles;
