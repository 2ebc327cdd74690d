//! The seam of the engine: what it asks of devices, policies and worlds, and what they answer.
//!
//! Owns: the traits of a world and its devices (`platform`), owned requests (`request`), the questions to a policy and
//! its answers (`policy`), errors, clients; the tables of knobs, counters and gauges.
//! Does not own: cached pages (`afflux-pages`); the engine's state of devices and files, and every step (the engine);
//! any decision (policies); any world.
//! Invariants: nothing here owns a file or a device, starts a task or waits. A policy's crate needs this seam alone,
//! and never the engine.

#![forbid(unsafe_code)]

pub mod client;
pub mod counters;
pub mod error;
pub mod gauges;
pub mod platform;
pub mod policy;
pub mod request;
pub mod settings;

/// The largest size a file can have: 2^63 - 1, the largest signed offset of a host.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;
