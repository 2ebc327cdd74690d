//! A fence of all threads of the process: membarrier(2).
//!
//! Owns: the question whether the host has it, the call.
//! Does not own: the moments at which it is needed (the engine).
//! Invariants: once registered, a process may call it for its whole life. If the host refuses it at the start,
//! nobody asks again.

use std::io;
use std::sync::OnceLock;

/// The call, if the host has it (since Linux 4.14) and allows it.
pub(crate) fn of_all_threads() -> Option<fn()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        let register = call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        register.and_then(|()| call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)).is_ok()
    });
    registered.then_some(fence)
}

/// # Panics
/// If the host refuses what it has allowed: a filter for system calls was installed later that lacks the call.
fn fence() {
    while let Err(error) = call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        // The kernel takes memory for the set of CPUs.
        assert!(error.raw_os_error() == Some(libc::ENOMEM), "membarrier was allowed and is refused now: {error}");
        std::thread::yield_now();
    }
}

fn call(command: libc::c_int) -> io::Result<()> {
    let (flags, cpu): (libc::c_uint, libc::c_int) = (0, 0);
    // SAFETY: the call takes numbers only and changes no memory.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, flags, cpu) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
