//! The device under the engine, over a simulated store.
//!
//! All figures here are simulated: virtual time, a store of stated latency and bandwidth.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod attributes;
mod away;
mod figures;
mod fixture;
mod holes;
mod kills;
mod unsynced;
