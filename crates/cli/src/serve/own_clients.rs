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
use crate::failure::{Failure, Outcome};

/// Whether the server is to be safe to mount on its own host.
pub(super) fn are_served(listen: IpAddr, asked: LockMemory) -> bool {
    match asked {
        LockMemory::On => true,
        LockMemory::Off => false,
        LockMemory::Auto => listen.to_canonical().is_loopback(),
    }
}

/// Has the kernel not write for others' sake when this thread and those that it starts need memory. Where it may not
/// ask for that (it takes a privilege), memory that is locked has to do.
pub(super) fn flush_for_the_host() {
    let _ = configure_io_flusher_behavior(true);
}

/// Keeps what is mapped now in memory, each page from its first use on: the cache, the program, what it has allocated.
///
/// # Errors
/// When it was asked for by name and the host refuses.
pub(super) fn lock_memory(asked: LockMemory, notes: &mut Vec<String>) -> Outcome {
    let Err(errno) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT) else { return Ok(()) };
    let error = io::Error::from(errno);
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
