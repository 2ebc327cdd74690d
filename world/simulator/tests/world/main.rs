//! The world by itself: devices, the same run for the same seed, virtual CPUs.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod conformance;
mod determinism;
mod queueing;
