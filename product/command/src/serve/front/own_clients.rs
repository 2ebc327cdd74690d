//! Serving clients on the server's own host: the server is then part of the host's reclaim.
//!
//! Such a client's dirty pages are freed only once the server has taken them. If the server needs memory for that, and
//! the host can free some only by writing such pages, each waits for the other.
//!
//! Owns: the requests to the host against that.
//! Does not own: when they are made (`serve`).
//! Invariants: settings that threads inherit are made before any thread starts. A failure to lock memory is reported,
//! and fatal only if the user asked for locked memory by name.

use std::io;
use std::net::IpAddr;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::configure_io_flusher_behavior;

use crate::settings::LockMemory;
use afflux_report::failure::{Failure, Outcome};

/// Whether the server must be safe to mount on its own host.
pub(crate) fn are_served(listen: IpAddr, asked: LockMemory) -> bool {
    match asked {
        LockMemory::On => true,
        LockMemory::Off => false,
        LockMemory::Auto => listen.to_canonical().is_loopback(),
    }
}

/// Sets this thread and its future threads up so that their allocations do not make the kernel write dirty pages. Also
/// locks the program's memory, each page from its first use on. Later allocations are not locked, since the allocator
/// could not give them back. Returns whether memory can be locked. The host may refuse the first setting, which takes a
/// privilege; locked memory then has to be enough.
pub(crate) fn prepare() -> io::Result<()> {
    let _ = configure_io_flusher_behavior(true);
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?)
}

/// Reports that memory could not be locked.
///
/// # Errors
/// When the user asked for it by name.
pub(crate) fn note_locked(locked: io::Result<()>, asked: LockMemory, notes: &mut Vec<String>) -> Outcome {
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
