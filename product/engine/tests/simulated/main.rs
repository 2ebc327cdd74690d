//! Rules of the engine, each shown in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod ages;
mod background_time;
mod bad_devices;
mod beside_programs;
mod beside_readers;
mod bounded_steps;
mod budget;
mod clients;
mod delays;
mod device_time;
mod dirty_limits;
mod errors;
mod explained;
mod fixture;
mod flushing;
mod hang;
mod idle;
mod in_force;
mod index_memory;
mod large_memory;
mod laws;
mod policy_knobs;
mod prices;
mod readahead;
mod reading;
mod reading_ahead;
mod reclaiming;
mod space;
mod stamps;
mod sync_share;
mod syncing;
mod timed;
mod until_flush;
mod writing_back;
