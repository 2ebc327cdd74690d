//! A running server: the figures that watchers read, and the changes that commands make.
//!
//! Owns: the report, the figures, knobs in force, reload, upkeep, signals.
//! Does not own: the start and the end (`serve`).
//! Invariants: only a drain waits for a device.

pub(crate) mod clients;
pub(crate) mod device_identity;
pub(crate) mod device_label;
pub(crate) mod event_stream;
pub(crate) mod figures;
pub(crate) mod gauges;
pub(crate) mod in_force;
pub(crate) mod reload;
pub(crate) mod running;
pub(crate) mod signals;
pub(crate) mod small_files;
pub(crate) mod upkeep;
