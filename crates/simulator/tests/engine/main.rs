//! Rules of the engine, and of the volume above it, each shown in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod background_time;
mod device_time;
mod dirty_limits;
mod errors;
mod lab;
mod laws;
mod prices;
mod reading;
mod reading_ahead;
mod reclaiming;
mod stale_handles;
mod stamps;
mod syncing;
mod until_flush;
mod volume;
mod writing_back;
