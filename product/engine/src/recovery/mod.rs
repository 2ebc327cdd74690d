//! What outlives the process, if the arena's memory does: files in their slots, and the look at what a kill left.
//!
//! Owns: the form of a file slot (`slots`), the look (`look`), the files that were found and not adopted yet (`found`),
//! writing them home without an engine (`rescue`).
//! Does not own: the memory (the crate `frames`), the records (`page`), the return of found pages to their files
//! (`adopt`).
//! Invariants: a file is live in its slot before a page of it is dirtied, and until no record names it. Nothing here
//! waits, or asks a device.

pub(crate) mod adopt;
pub(crate) mod found;
pub(crate) mod look;
mod rescue;
pub(crate) mod slots;

pub use found::Recovered;
pub use look::Quarantined;
pub use rescue::RescuedFile;
pub use slots::{FILE_KEY_BYTES_MAX, FileKey};
