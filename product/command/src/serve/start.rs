//! The parts of a start, in the order in which they come.
//!
//! Owns: directories, addresses, the check before a start, the engine.
//! Does not own: the front (`front`), the memory (`persisted`).
//! Invariants: everything that can refuse a start comes before the first answer to a client.

pub(crate) mod check;
pub(crate) mod engine;
pub(crate) mod exports;
pub(crate) mod open_files;
pub(crate) mod prefault;
pub(crate) mod resources;
pub(crate) mod source;
pub(crate) mod wanted_volume;
