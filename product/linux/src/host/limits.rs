//! How many descriptors the process may have.
//!
//! Owns: raising the soft limit to the hard one, the shares that objects and connections get.
//! Does not own: counting those in use (the volume).
//! Invariants: objects, connections and everything else (rings, devices, calls in progress) have
//! shares that do not overlap, so that no number of connections makes a file unusable.

#[cfg(test)]
mod tests;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::net::CONNECTIONS_MAX;

/// More is never used: the volume keeps 65,536 inodes.
const DESCRIPTORS_MAX: u64 = 1 << 19;
/// What is left for everything else: a quarter, within these.
const RESERVED_MIN: u64 = 64;
const RESERVED_MAX: u64 = 2048;

/// How many descriptors are for what.
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

/// Raises the limit as far as it may be, and gives how many descriptors objects may take.
pub(super) fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let mut limit = current.unwrap_or(DESCRIPTORS_MAX);
    if limit < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok() {
        limit = wanted;
    }
    Shares::of(limit).objects
}

/// How many connections may be served at once under the limit on descriptors as it is now: after a
/// tree was opened, which raises it. At most [`CONNECTIONS_MAX`].
pub fn connections_max() -> usize {
    Shares::of(getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTORS_MAX)).connections
}
