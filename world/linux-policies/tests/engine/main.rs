//! Every policy over the real engine, in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod fixture;
mod hung;
mod kernels;
mod knobs;
mod pauses;
mod rules;
