//! Rules of the engine, each shown in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod background_time;
mod device_time;
mod dirty_limits;
mod errors;
mod lab;
mod laws;
mod reading;
mod reading_ahead;
mod reclaiming;
mod syncing;
mod until_flush;
mod writing_back;
