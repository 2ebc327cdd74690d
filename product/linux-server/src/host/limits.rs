//! The bound on the process's descriptors, and its parts.
//!
//! Owns: raising the soft limit to the hard one, the parts for objects, spare descriptors and connections.
//! Does not own: counting the descriptors in use (the volume, `HostFile`), what happens if none is free
//! (`afflux_linux_device::shortage`).
//! Invariants: objects, spare descriptors, connections and all other users (rings, devices, calls in progress) have
//! parts that do not overlap, so that no number of connections makes a file unusable, and no number of files a
//! connection.

#[cfg(test)]
mod tests;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::net::CONNECTIONS_MAX;
use afflux_linux_device::shortage::keep_descriptors;

/// The server never uses more: the volume caches 65,536 inodes.
const DESCRIPTORS_MAX: u64 = 1 << 19;
/// The part for objects and their spare descriptors: spare ones have one of so many, ...
const SPARE_PART: usize = 16;
/// ... and more if objects have these.
const OBJECTS_MAX: usize = 160_000;
/// The part for all other users: a quarter, within these bounds.
const RESERVED_MIN: u64 = 64;
const RESERVED_MAX: u64 = 2048;

/// The numbers of descriptors for each use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DescriptorBounds {
    /// Objects, and the descriptors that files were opened with.
    pub(super) objects: usize,
    /// Further descriptors of files, which can be closed and opened anew.
    pub(super) spare: usize,
    connections: usize,
}

impl DescriptorBounds {
    fn of(limit: u64) -> Self {
        let limit = limit.min(DESCRIPTORS_MAX);
        let reserved = (limit / 4).clamp(RESERVED_MIN, RESERVED_MAX);
        let connections = (reserved as usize / 2).min(CONNECTIONS_MAX);
        let files = limit.saturating_sub(reserved) as usize;
        let objects = (files - files / SPARE_PART).min(OBJECTS_MAX);
        Self { objects, spare: files - objects, connections }
    }
}

/// Raises the limit as far as possible, and returns the parts.
pub(super) fn raise() -> DescriptorBounds {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let mut limit = current.unwrap_or(DESCRIPTORS_MAX);
    if limit < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok() {
        limit = wanted;
    }
    keep_descriptors();
    DescriptorBounds::of(limit)
}

/// Most connections to serve at once under the current limit on descriptors. Opening a tree raises
/// that limit, so call this afterwards. At most [`CONNECTIONS_MAX`].
pub fn connections_max() -> usize {
    DescriptorBounds::of(getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_MAX)).connections
}
