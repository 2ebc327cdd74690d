//! Workloads of a machine, and whole runs.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod engine_run;
mod fio;
mod jobs;
mod nfs_client;
mod parking;
mod simulation;
