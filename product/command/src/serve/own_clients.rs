//! Serving clients of this host itself: the server then is in the path by which the host gets its memory back.
//!
//! Such a client's dirty pages are free only once the server has taken them. If the server needs memory for that, and
//! the host can have some only by writing such pages, both wait for each other.
//!
//! Owns: what is asked of the host against that. Does not own: when (`serve`).
//! Invariants: what threads inherit is asked for before any is started. That memory cannot be locked is said, and not
//! fatal unless it was asked for by name.

use std::io;
use std::net::IpAddr;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;

use crate::configuration::LockMemory;
use afflux_report::failure::{Failure, Outcome};

/// Whether the server is to be safe to mount on its own host.
pub(super) fn are_served(listen: IpAddr, asked: LockMemory) -> bool {
    match asked {
        LockMemory::On => true,
        LockMemory::Off => false,
        LockMemory::Auto => listen.to_canonical().is_loopback(),
    }
}

/// Has the kernel not write for others' sake when this thread and those that it starts need memory, and keeps the
/// program in memory, each page from its first use on. Not what is allocated later: the allocator could not give
/// that back. Gives whether memory can be locked; what else the host refuses (it takes a privilege), locked memory has
/// to do for.
pub(super) fn prepare() -> io::Result<()> {
    let _ = configure_io_flusher_behavior(true);
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?)
}

/// Says that memory could not be locked, if that is so.
///
/// # Errors
/// When it was asked for by name.
pub(super) fn say_locked(locked: io::Result<()>, asked: LockMemory, notes: &mut Vec<String>) -> Outcome {
    let Err(error) = locked else { return Ok(()) };
    let needs = "it takes CAP_IPC_LOCK, or a limit on locked memory (ulimit -l) above the cache's size";
    if asked == LockMemory::On {
        return Err(Failure::failed(format!("--lock-memory on: memory cannot be locked ({error}): {needs}")));
    }
    notes.push(format!(
        "memory is not locked ({error}): when this host is short of memory, a mount of this server on it may hang; {needs}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests;
