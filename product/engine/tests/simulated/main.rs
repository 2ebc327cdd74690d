//! Rules of the engine, each shown in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod ages;
mod background_time;
mod bounded_steps;
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
mod index_memory;
mod killed;
mod large_memory;
mod laws;
mod obstacles;
mod ordering;
mod overdue;
mod policy_knobs;
mod readahead;
mod reading;
mod reading_ahead;
mod reclaiming;
mod space;
mod stamps;
#[allow(dead_code, reason = "the tests of `product/budget` share it")]
mod streams;
mod sync_at_once;
mod sync_beside;
mod sync_in_call;
mod sync_share;
mod syncing;
mod timed;
mod until_flush;
mod writing_back;
