//! The bound on the process's descriptors, and its shares.
//!
//! Owns: raising the soft limit to the hard one, the shares of objects and connections.
//! Does not own: counting the descriptors in use (the volume).
//! Invariants: objects, connections and all other users (rings, devices, calls in progress) have
//! shares that do not overlap, so that no number of connections makes a file unusable.

#[cfg(test)]
mod tests;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::net::CONNECTIONS_MAX;

/// The server never uses more: the volume keeps 65,536 inodes.
const DESCRIPTORS_MAX: u64 = 1 << 19;
/// The share of all other users: a quarter, within these bounds.
const RESERVED_MIN: u64 = 64;
const RESERVED_MAX: u64 = 2048;

/// The numbers of descriptors for each use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shares {
    objects: usize,
    connections: usize,
}

impl Shares {
    fn of(limit: u64) -> Self {
        let limit = limit.min(DESCRIPTORS_MAX);
        let reserved = (limit / 4).clamp(RESERVED_MIN, RESERVED_MAX);
        let connections = (reserved as usize / 2).min(CONNECTIONS_MAX);
        Self { objects: limit.saturating_sub(reserved) as usize, connections }
    }
}

/// Raises the limit as far as possible, and returns the share of objects.
pub(super) fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let mut limit = current.unwrap_or(DESCRIPTORS_MAX);
    if limit < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok() {
        limit = wanted;
    }
    Shares::of(limit).objects
}

/// Most connections to serve at once under the current limit on descriptors. Opening a tree raises
/// that limit, so call this afterwards. At most [`CONNECTIONS_MAX`].
pub fn connections_max() -> usize {
    Shares::of(getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_MAX)).connections
}
