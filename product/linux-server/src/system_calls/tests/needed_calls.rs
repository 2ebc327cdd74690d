use rustix::thread::set_no_new_privs;

use super::super::*;
use afflux_linux_device::{IoChoice, Reactors};

fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

/// Skips as many statements if the loaded value has the property, or does not have it.
fn jump(property: u32, value: u32, has: u8, has_not: u8) -> libc::sock_filter {
    let code = (libc::BPF_JMP | property | libc::BPF_K) as u16;
    libc::sock_filter { code, jt: has, jf: has_not, k: value }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Has the kernel refuse one call to this thread from now on.
fn refuse(number: c_long, errno: i32) -> io::Result<()> {
    filter(&mut [
        statement(LOAD, 0),
        jump(libc::BPF_JEQ, number as u32, 1, 0),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
        statement(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32),
    ])
}

/// Has the kernel refuse this thread all namespaces but those of mounts, as `RestrictNamespaces=mnt` of systemd does.
fn refuse_other_namespaces() -> io::Result<()> {
    let others = libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWUTS;
    let argument = |at: u32| statement(LOAD, 16 + 8 * at);
    filter(&mut [
        statement(LOAD, 0),
        jump(libc::BPF_JEQ, libc::SYS_unshare as u32, 0, 2),
        argument(0),
        jump(libc::BPF_JSET, others as u32, 3, 4),
        jump(libc::BPF_JEQ, libc::SYS_setns as u32, 0, 3),
        argument(1),
        jump(libc::BPF_JSET, others as u32, 0, 1),
        statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(RETURN, libc::SECCOMP_RET_ALLOW),
    ])
}

fn filter(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set_no_new_privs(true)?;
    // SAFETY: the kernel reads the filter, which lives until the call has returned.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The answer to a thread to which the kernel refuses one call; none if this kernel takes no filter.
fn answer_without(number: c_long, errno: i32, purpose: CallsFor) -> Option<Result<(), RefusedCalls>> {
    let thread = std::thread::spawn(move || refuse(number, errno).is_ok().then(|| check_needed_calls(purpose)));
    thread.join().unwrap()
}

#[test]
fn this_process_may_make_all_needed_calls() {
    for purpose in [CallsFor::Serving, CallsFor::Mounting] {
        assert_eq!(check_needed_calls(purpose), Ok(()));
    }
}

#[test]
fn each_refused_call_is_told_with_its_name() {
    let root = geteuid().is_root();
    let serving = SERVING
        .iter()
        .chain(WITH_SUBSTITUTES)
        .chain(ACTING.iter().filter(|_| root))
        .map(|call| (call, CallsFor::Serving));
    let mounting = MOUNTING.iter().filter(|_| root).map(|call| (call, CallsFor::Mounting));
    for (call, purpose) in serving.chain(mounting) {
        for errno in [Errno::PERM, Errno::NOSYS] {
            let Some(answer) = answer_without(call.number, errno.raw_os_error(), purpose) else {
                afflux_scratch::skipped!("this kernel takes no filter");
                return;
            };
            let told = if call.has_substitute && errno == Errno::NOSYS {
                Ok(())
            } else {
                Err(RefusedCalls(vec![(call.name, errno)]))
            };
            assert_eq!(answer, told, "{}", call.name);
        }
    }
}

#[test]
fn a_mount_needs_no_namespaces_but_those_of_mounts() {
    let answer = || refuse_other_namespaces().is_ok().then(|| check_needed_calls(CallsFor::Mounting));
    let Some(answer) = std::thread::spawn(answer).join().unwrap() else {
        afflux_scratch::skipped!("this kernel takes no filter");
        return;
    };
    assert_eq!(answer, Ok(()));
}

#[test]
fn a_ring_that_may_not_be_used_is_told_with_the_refused_call() {
    let calls = [
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("io_uring_register", libc::SYS_io_uring_register),
        ("io_uring_enter", libc::SYS_io_uring_enter),
    ];
    let start = || Reactors::start(1, IoChoice::Uring).err().map(|error| error.to_string());
    if start().is_some() {
        afflux_scratch::skipped!("this host has no io_uring");
        return;
    }
    for (name, number) in calls {
        let thread = std::thread::spawn(move || refuse(number, libc::EPERM).is_ok().then(|| start().unwrap()));
        let Some(told) = thread.join().unwrap() else {
            afflux_scratch::skipped!("this kernel takes no filter");
            return;
        };
        assert!(told.contains(&format!("{name} was refused")), "{told}");
    }
}
