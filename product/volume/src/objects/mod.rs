//! What is kept of objects, in memory and not: each a thing with methods.
//!
//! Owns: inodes, the table they are found in, handles, what callers may do with each, what was seen of objects that are not in memory, names asked
//! for a moment ago, pieces of listings, files that wait for their times, devices.
//! Does not own: when the host is asked, and in what order (`handles`, `names`, `data`, `coherence`); nothing here
//! knows of the volume.
//! Invariants: everything is bounded. Nothing here waits or calls the host, but for the device that is made when
//! an object on it is met first.

pub(crate) mod callers;
pub(crate) mod devices;
pub(crate) mod handle;
pub(crate) mod inode;
pub(crate) mod location;
pub(crate) mod location_log;
pub(crate) mod name_cache;
pub(crate) mod pieces;
pub(crate) mod rights;
pub(crate) mod settling;
pub(crate) mod sightings;
pub(crate) mod table;
mod usage;
pub(crate) mod walk;
