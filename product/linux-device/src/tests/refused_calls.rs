//! Calls that the kernel refuses to one thread of a test, as to a program that closed the door behind its start.
//!
//! Owns: the filter.
//! Does not own: what the thread does then.
//! Invariants: only tests have this. A filter stays until the thread's end.

use libc::{c_long, sock_filter};

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Has the kernel refuse a call to this thread from now on. Returns whether it takes a filter here.
#[must_use]
pub(crate) fn try_refuse(call: c_long, errno: i32) -> bool {
    let step = |code: u32, k: u32, (jt, jf): (u8, u8)| sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(LOAD, 0, (0, 0)),
        step(JUMP_IF_EQUAL, call as u32, (0, 1)),
        step(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32, (0, 0)),
        step(RETURN, libc::SECCOMP_RET_ALLOW, (0, 0)),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the call has numbers only.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return false;
    }
    // SAFETY: the kernel reads the filter, which lives until the call has returned.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) == 0 }
}
