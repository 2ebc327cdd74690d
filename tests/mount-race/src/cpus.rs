//! The CPUs of this process.
//!
//! Owns: the CPU that callers and servers keep to.
//! Does not own: the choice (`options`).
//! Invariants: all later threads and processes of the calling thread have its CPUs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs of the calling thread.
pub(crate) fn all() -> io::Result<CpuSet> {
    Ok(sched_getaffinity(None)?)
}

/// Has the calling thread use one CPU, or all of these.
pub(crate) fn keep_to(one: Option<usize>, all: &CpuSet) -> io::Result<()> {
    let mut set = CpuSet::new();
    match one {
        Some(cpu) => set.set(cpu),
        None => set = *all,
    }
    Ok(sched_setaffinity(None, &set)?)
}
