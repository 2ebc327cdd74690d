//! Properties of the flush budget on the whole engine, in virtual time on simulated disks.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test crate, also outside its test functions")]

mod bad_devices;
mod beside_programs;
mod beside_readers;
mod budget;
#[allow(dead_code, reason = "the engine's tests use the rest")]
#[path = "../../../engine/tests/simulated/fixture.rs"]
mod fixture;
mod in_force;
mod prices;
#[allow(dead_code, reason = "the engine's tests use the rest")]
#[path = "../../../engine/tests/simulated/streams.rs"]
mod streams;
