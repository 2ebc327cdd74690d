//! Devices and their files, between cached pages and the engine's mechanisms.
//!
//! Owns: files with their lists and states, requests in flight, failures and hangs, learned times (`devices`); the
//! seams to policies (`policy`, `readahead`) and to worlds (`platform`, `request`); knobs, counters and gauges; the
//! look at memory after a kill (`recovery`).
//! Does not own: cached pages (`afflux-pages`), any decision (policies), any step of a read, a write or a sync (the
//! engine).
//! Invariants: nothing here starts a task or waits for a device. A lock here is held for a few steps, never over an
//! await.

#![forbid(unsafe_code)]

pub mod client;
pub mod counters;
pub mod devices;
pub mod durations;
pub mod error;
pub mod gauges;
pub mod platform;
pub mod policy;
pub mod readahead;
pub mod recovery;
pub mod request;
pub mod settings;

/// The largest size a file can have: 2^63 - 1, the largest signed offset of a host.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;
