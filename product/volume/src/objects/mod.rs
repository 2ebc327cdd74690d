//! The state of objects, in memory or not: each part a type with methods.
//!
//! Owns: inodes, the table of inodes, handles, callers' rights, recent lookups, numbers for clients, pieces of
//! listings, files that wait for their times, files of an earlier process, devices, units of times.
//! Does not own: the questions to the host and their order (`handles`, `names`, `data`, `coherence`). Nothing here
//! knows of the volume.
//! Invariants: everything is bounded. Nothing here waits or calls the host, except for adding the device of the first
//! object on it.

pub(crate) mod devices;
pub(crate) mod directory_cache;
pub(crate) mod found_files;
pub(crate) mod handle;
pub(crate) mod inode;
pub(crate) mod inode_state;
pub(crate) mod listener;
pub(crate) mod rights;
pub(crate) mod table;
