//! System calls that a server of files never makes, refused for the rest of its life.
//!
//! Owns: the list of these calls, the filter that the kernel gets. A test judges each call of the kernel's headers.
//! Does not own: the moment of its installation (the command); other privileges (`users`).
//! Invariants: a filter holds for the thread that installs it and for threads started later, and cannot be removed. It
//! decides by the call's number alone but for `clone`, so the kernel remembers the allowed numbers and runs no filter
//! for them (since 5.11). The filter does not see operations that go through a ring.
//!
//! The list names what is refused. A list of what is allowed would end the server at a call that a later C library
//! makes.

use std::io;

use libc::c_long;

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

#[cfg(test)]
mod tests;
