//! The system calls of a server of files: the list of calls that the server never makes and refuses to itself, and the
//! list of needed calls.
//!
//! Owns: the lists of these calls, the filter that the kernel gets, the question whether the kernel takes the needed
//! ones from this process. A test judges each call of the kernel's headers.
//! Does not own: the moment of the filter's installation (the command); other privileges (`users`); needed calls that
//! the server can replace by others.
//! Invariants: a filter holds for the thread that installs it and for threads started later, and cannot be removed. It
//! decides by the call's number alone but for `clone`, so the kernel remembers the allowed numbers and runs no filter
//! for them (since 5.11). The filter does not see operations that go through a ring. The question for a needed call
//! changes nothing. Each call gets arguments that it refuses, or that mean 'no change'. The kernel checks these
//! arguments before it checks rights, so that EPERM is a filter's answer.
//!
//! The list names what is refused. A list of what is allowed would end the server at a call that a later C library
//! makes.

use std::{fmt, io};

use libc::c_long;
use rustix::io::Errno;
use rustix::process::geteuid;

/// These calls run other programs or look into them, change the process's view of the machine, or concern the kernel's
/// own modules, clocks, memory and keys.
const REFUSED: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    LSM_SET_SELF_ATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
];

/// Calls that the C library's headers do not have yet: since Linux 6.8 and 6.15. Calls as new have one number on all
/// architectures.
const LSM_SET_SELF_ATTR: c_long = 460;
const OPEN_TREE_ATTR: c_long = 467;

/// New namespaces, in the flags of `clone`. In one for users a process has all capabilities again.
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET)
    .cast_unsigned();

/// The kernel may take calls of other architectures, too, and their numbers differ.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Numbers from here on are the 32-bit variants of x86-64's calls. Other architectures have none.
const OTHER_NUMBERS: u32 = 0x4000_0000;

/// The offsets at which the kernel shows a filter the number and the architecture of a call, and the lower half of its
/// first argument.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENT_AT: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };

fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Compares the loaded word with `value`: for equality, or with `code` for 'at least'. Skips `if_so` or `if_not`
/// instructions.
fn jump(code: u32, value: u32, if_so: u8, if_not: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_K | code) as u16, jt: if_so, jf: if_not, k: value }
}

fn program(architecture: u32) -> Vec<libc::sock_filter> {
    let load = |at| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    let end = |action| statement(libc::BPF_RET | libc::BPF_K, action);
    let refuse = |errno: i32| end(libc::SECCOMP_RET_ERRNO | errno as u32);
    let count = REFUSED.len() as u8;
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, architecture, 0, count + 7),
        load(NUMBER_AT),
        jump(libc::BPF_JGE, OTHER_NUMBERS, count + 5, 0),
    ];
    program.extend((0..).zip(REFUSED).map(|(at, number)| jump(libc::BPF_JEQ, *number as u32, count + 4 - at, 0)));
    program.extend([
        // Its flags are in memory, which a filter does not see. Without it the C library takes `clone`.
        jump(libc::BPF_JEQ, libc::SYS_clone3 as u32, 5, 0),
        jump(libc::BPF_JEQ, libc::SYS_clone as u32, 0, 2),
        load(ARGUMENT_AT),
        jump(libc::BPF_JSET, NEW_NAMESPACES, 1, 0),
        end(libc::SECCOMP_RET_ALLOW),
        refuse(libc::EPERM),
        refuse(libc::ENOSYS),
    ]);
    program
}

/// Makes the kernel refuse, with EPERM, the calls that a server of files never makes, on this thread and on threads
/// started later. Call it after [`give_up_privileges`](crate::give_up_privileges) and before other threads are started.
///
/// # Errors
/// The kernel has no filters, or a supervisor of this process allows none.
pub fn refuse_foreign_calls() -> io::Result<()> {
    let Some(architecture) = ARCHITECTURE else { return Err(io::ErrorKind::Unsupported.into()) };
    let mut program = program(architecture);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // Without the flag, kernels before 5.16 would slow down all calls and all branches of this process. The process
    // runs only its own code, so it needs no such mitigation.
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    // SAFETY: the kernel reads the filter, which lives until the call has returned.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

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
