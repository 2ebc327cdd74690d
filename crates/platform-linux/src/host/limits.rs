//! How many descriptors the process may have.
//!
//! Owns: raising the soft limit to the hard one, the share that objects and files get.
//! Does not own: counting those in use (the volume).
//! Invariants: sockets, rings and devices keep a share of their own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More is never used: the volume keeps 65,536 inodes.
const DESCRIPTORS_MAX: u64 = 1 << 19;
/// What is left for everything else: a quarter, within these.
const RESERVED_MIN: u64 = 64;
const RESERVED_MAX: u64 = 1024;

/// Raises the limit as far as it may be, and gives how many descriptors objects may take.
pub(super) fn raise() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let mut limit = current.unwrap_or(DESCRIPTORS_MAX);
    if limit < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok() {
        limit = wanted;
    }
    let limit = limit.min(DESCRIPTORS_MAX);
    let reserved = (limit / 4).clamp(RESERVED_MIN, RESERVED_MAX);
    limit.saturating_sub(reserved) as usize
}
