//! System calls that a server of files cannot do without.
//!
//! Owns: the lists of these calls, the question whether the kernel takes them from this process.
//! Does not own: the calls that the server refuses to itself (`filter`), the calls that it can replace by others.
//! Invariants: the question changes nothing. Each call gets arguments that it refuses, or that mean 'no change'. The
//! kernel looks at these arguments before it looks at rights, so that EPERM is a filter's answer.

use std::{fmt, io};

use libc::c_long;
use rustix::io::Errno;
use rustix::process::geteuid;

/// What the calls are needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsFor {
    /// Calls that each server makes.
    Serving,
    /// A mount that root's server makes itself.
    Mounting,
}

/// A call. The C library may have a substitute for it on a kernel that does not know it.
struct Needed {
    name: &'static str,
    number: c_long,
    has_substitute: bool,
}

macro_rules! needed {
    ($($(#[$condition:meta])* $name:ident $number:ident),* $(,)?) => {
        &[$($(#[$condition])* Needed { name: stringify!($name), number: libc::$number, has_substitute: false }),*]
    };
}

const SERVING: &[Needed] = needed![
    accept4 SYS_accept4,
    bind SYS_bind,
    eventfd2 SYS_eventfd2,
    fchmod SYS_fchmod,
    fchmodat SYS_fchmodat,
    fchownat SYS_fchownat,
    fcntl SYS_fcntl,
    fdatasync SYS_fdatasync,
    flock SYS_flock,
    fstat SYS_fstat,
    fstatfs SYS_fstatfs,
    fsync SYS_fsync,
    ftruncate SYS_ftruncate,
    getdents64 SYS_getdents64,
    getsockname SYS_getsockname,
    gettid SYS_gettid,
    linkat SYS_linkat,
    listen SYS_listen,
    lseek SYS_lseek,
    mkdirat SYS_mkdirat,
    ppoll SYS_ppoll,
    preadv SYS_preadv,
    prlimit64 SYS_prlimit64,
    pwritev SYS_pwritev,
    #[cfg(target_arch = "x86_64")]
    readlink SYS_readlink,
    readlinkat SYS_readlinkat,
    renameat2 SYS_renameat2,
    setsockopt SYS_setsockopt,
    socket SYS_socket,
    socketpair SYS_socketpair,
    statx SYS_statx,
    symlinkat SYS_symlinkat,
    sysinfo SYS_sysinfo,
    unlinkat SYS_unlinkat,
    utimensat SYS_utimensat,
];

/// Calls for which the C library has others where the kernel does not know them. A filter must not answer 'not
/// permitted'.
const WITH_SUBSTITUTES: &[Needed] = &[
    Needed { name: "clone3", number: libc::SYS_clone3, has_substitute: true },
    Needed { name: "faccessat2", number: libc::SYS_faccessat2, has_substitute: true },
];

/// Root's server carries calls out as their callers.
const ACTING: &[Needed] = needed![setresgid SYS_setresgid, setresuid SYS_setresuid];

const MOUNTING: &[Needed] = needed![chdir SYS_chdir, fchdir SYS_fchdir, mount SYS_mount, pipe2 SYS_pipe2, setns SYS_setns, umount2 SYS_umount2, unshare SYS_unshare];

/// Needed calls that the kernel does not take from this process.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusedCalls(Vec<(&'static str, Errno)>);

impl fmt::Display for RefusedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this process may not make system calls that it needs: ")?;
        for (at, (name, errno)) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            let why = if *errno == Errno::NOSYS { "not implemented" } else { "not permitted" };
            write!(f, "{before}{name} ({why})")?;
        }
        f.write_str(
            "; a filter of system calls refuses them (a container's, a sandbox's or systemd's SystemCallFilter=): allow them there",
        )
    }
}

impl std::error::Error for RefusedCalls {}

/// Checks that the kernel takes the needed calls from this thread.
///
/// # Errors
/// Names the calls that it does not take.
pub fn check_needed_calls(purpose: CallsFor) -> Result<(), RefusedCalls> {
    let is_root = geteuid().is_root();
    let lists: &[_] = match purpose {
        CallsFor::Serving if is_root => &[SERVING, WITH_SUBSTITUTES, ACTING],
        CallsFor::Serving => &[SERVING, WITH_SUBSTITUTES],
        CallsFor::Mounting if is_root => &[MOUNTING],
        CallsFor::Mounting => &[],
    };
    let refused: Vec<_> =
        lists.iter().copied().flatten().filter_map(|call| Some((call.name, refusal(call)?))).collect();
    if refused.is_empty() { Ok(()) } else { Err(RefusedCalls(refused)) }
}

/// The answer of a filter, or of a kernel that does not know the call.
fn refusal(call: &Needed) -> Option<Errno> {
    const NONE: c_long = -1;
    // A filter may permit the namespaces of mounts alone, as `RestrictNamespaces=mnt` of systemd does. The second flag
    // is one that no call about namespaces takes.
    const OF_MOUNTS: c_long = (libc::CLONE_NEWNS | libc::CLONE_VFORK) as c_long;
    let (first, second) = match call.number {
        libc::SYS_unshare => (OF_MOUNTS, NONE),
        libc::SYS_setns => (NONE, OF_MOUNTS),
        _ => (NONE, NONE),
    };
    // SAFETY: with arguments of -1, no call of the lists reads or writes memory, and none has an effect: there is no
    // such descriptor, address, flag or size. For a user's or group's number it means 'no change'. The kernel refuses
    // the flags of `OF_MOUNTS` together.
    let result = unsafe { libc::syscall(call.number, first, second, NONE, NONE, NONE, NONE) };
    let errno = (result == -1).then(|| Errno::from_io_error(&io::Error::last_os_error()))??;
    match errno {
        Errno::NOSYS => (!call.has_substitute).then_some(errno),
        Errno::PERM | Errno::ACCESS => Some(errno),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
