//! Rules of the engine, each shown in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod background_time;
mod dirty_limits;
mod errors;
mod lab;
mod laws;
mod reading;
mod reading_ahead;
mod reclaiming;
mod syncing;
mod writing_back;
