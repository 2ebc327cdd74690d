//! A volume in an object store behind a server.
//!
//! Owns: the claim, the volume, its views and its end.
//! Does not own: the store and its records (crates `object`, `object-store`).
//! Invariants: the server runs without this room unless it is built with the feature `object`.

pub(crate) mod store_claim;
pub(crate) mod store_end;
pub(crate) mod store_last;
pub(crate) mod store_view;
pub(crate) mod store_volume;
pub(crate) mod store_writer;
pub(crate) mod volume_location;
