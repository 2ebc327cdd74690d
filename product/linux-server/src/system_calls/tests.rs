mod needed_calls;

use std::time::{Duration, Instant};

use rustix::thread::set_no_new_privs;

use super::*;

/// The error of a call without meaningful arguments.
fn errno_of(number: c_long) -> i32 {
    // SAFETY: with arguments that are all 0, each of these calls only fails.
    let result = unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) };
    assert_eq!(result, -1, "call {number}");
    io::Error::last_os_error().raw_os_error().unwrap()
}

/// Runs a closure on a thread that has the filter.
fn filtered(run: impl FnOnce() + Send + 'static) {
    std::thread::spawn(|| {
        set_no_new_privs(true).unwrap();
        match refuse_foreign_calls() {
            Ok(()) => run(),
            Err(error) => afflux_scratch::skipped!("this kernel takes no filter: {error}"),
        }
    })
    .join()
    .unwrap();
}

#[test]
fn foreign_calls_are_refused_to_a_thread_and_those_it_starts() {
    let refused = || {
        let numbers = REFUSED.iter().filter(|number| {
            // For these calls, arguments of 0 are meaningful.
            let with_meaning = [libc::SYS_unshare, libc::SYS_personality, libc::SYS_acct, libc::SYS_syslog];
            !with_meaning.contains(number) && **number != libc::SYS_vhangup
        });
        numbers.for_each(|number| assert_eq!(errno_of(*number), libc::EPERM, "call {number}"));
    };
    let run = || std::process::Command::new("true").status().map_err(|error| error.kind());
    run().unwrap();
    filtered(move || {
        refused();
        std::thread::spawn(refused).join().unwrap();
        assert_eq!(run().unwrap_err(), io::ErrorKind::PermissionDenied);
        // SAFETY: reads the personality and changes nothing.
        assert_eq!(unsafe { libc::personality(0xffff_ffff) }, -1);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(errno_of(libc::SYS_ptrace | c_long::from(OTHER_NUMBERS)), libc::EPERM);
    });
}

#[test]
fn what_a_server_does_goes_on() {
    filtered(|| {
        let scratch = afflux_scratch::TestDirectory::new();
        let path = scratch.path().join("file");
        std::fs::write(&path, b"bytes").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
        std::fs::remove_file(&path).unwrap();
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || drop(std::net::TcpStream::connect(at).unwrap())).join().unwrap();
        listener.accept().unwrap();
    });
}

/// The action of a filter for a call, as the kernel finds it.
fn action(program: &[libc::sock_filter], number: u32, architecture: u32, argument: u32) -> u32 {
    let (mut at, mut word) = (0, 0);
    loop {
        let one = program[at];
        at += 1;
        let mut go = |holds: bool| at += usize::from(if holds { one.jt } else { one.jf });
        match u32::from(one.code) & !libc::BPF_K {
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                word = match one.k {
                    NUMBER_AT => number,
                    ARCHITECTURE_AT => architecture,
                    _ => argument,
                };
            }
            code if code == libc::BPF_JMP | libc::BPF_JEQ => go(word == one.k),
            code if code == libc::BPF_JMP | libc::BPF_JGE => go(word >= one.k),
            code if code == libc::BPF_JMP | libc::BPF_JSET => go(word & one.k != 0),
            code => {
                assert_eq!(code, libc::BPF_RET);
                return one.k;
            }
        }
    }
}

#[test]
fn each_call_meets_its_action() {
    const HERE: u32 = 7;
    let program = program(HERE);
    let of = |number: c_long, argument| action(&program, number as u32, HERE, argument);
    let (refused, unknown) =
        (libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    for number in REFUSED {
        assert_eq!(of(*number, 0), refused, "call {number}");
    }
    for number in [libc::SYS_read, libc::SYS_openat2, libc::SYS_quotactl_fd, 1000] {
        assert_eq!(of(number, u32::MAX), libc::SECCOMP_RET_ALLOW, "call {number}");
    }
    assert_eq!(of(libc::SYS_clone3, 0), unknown);
    let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    assert_eq!(of(libc::SYS_clone, thread as u32), libc::SECCOMP_RET_ALLOW);
    for namespace in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID] {
        assert_eq!(of(libc::SYS_clone, (thread | namespace) as u32), refused, "{namespace:x}");
    }
    assert_eq!(action(&program, libc::SYS_read as u32, HERE + 1, 0), refused, "another architecture");
    assert_eq!(action(&program, OTHER_NUMBERS, HERE, 0), refused);
}

/// Calls that stay allowed, by what a taken-over server could do with them that it cannot do with a file.
const LEFT: &[(&str, &str)] = &[
    (
        "files that are named or open, with the rights that the process still has",
        "read write open close stat fstat lstat poll lseek pread64 pwrite64 readv writev access pipe select dup dup2 fcntl \
         flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink \
         readlink chmod fchmod chown fchown lchown umask utime mknod ustat statfs fstatfs sync readahead setxattr lsetxattr \
         fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr \
         getdents64 fadvise64 utimes openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat \
         readlinkat fchmodat faccessat splice tee sync_file_range vmsplice utimensat fallocate dup3 pipe2 preadv pwritev \
         name_to_handle_at open_by_handle_at syncfs renameat2 copy_file_range preadv2 pwritev2 statx close_range openat2 \
         faccessat2 sendfile ioctl io_setup io_destroy io_getevents io_submit io_cancel io_pgetevents io_uring_setup \
         io_uring_enter io_uring_register inotify_init inotify_add_watch inotify_rm_watch inotify_init1 fchmodat2 cachestat \
         setxattrat getxattrat listxattrat removexattrat file_getattr file_setattr statmount listmount",
    ),
    ("it asks whether a file system has quotas; a change of them needs a right that is gone", "quotactl_fd"),
    (
        "sockets, in the process's own network",
        "socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair \
         setsockopt getsockopt accept4 recvmmsg sendmmsg",
    ),
    (
        "memory of the process itself",
        "mmap mprotect munmap brk mremap msync mincore madvise mlock munlock mlockall munlockall mbind set_mempolicy \
         get_mempolicy remap_file_pages memfd_create membarrier mlock2 pkey_mprotect pkey_alloc pkey_free memfd_secret \
         set_mempolicy_home_node map_shadow_stack mseal",
    ),
    (
        "threads, time and signals, within the rights that the process still has",
        "rt_sigaction rt_sigprocmask rt_sigreturn sched_yield pause nanosleep getitimer alarm setitimer getpid fork vfork \
         exit wait4 kill uname gettimeofday getrlimit getrusage sysinfo times setpgid getppid getpgrp setsid getpgid getsid \
         rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack getpriority setpriority sched_setparam \
         sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min \
         sched_rr_get_interval prctl arch_prctl setrlimit gettid tkill time futex sched_setaffinity sched_getaffinity \
         set_thread_area get_thread_area epoll_create epoll_ctl_old epoll_wait_old set_tid_address restart_syscall \
         timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime clock_getres clock_nanosleep \
         exit_group epoll_wait epoll_ctl tgkill waitid ioprio_set ioprio_get pselect6 ppoll set_robust_list \
         get_robust_list epoll_pwait signalfd timerfd_create eventfd timerfd_settime timerfd_gettime signalfd4 eventfd2 \
         epoll_create1 rt_tgsigqueueinfo prlimit64 getcpu sched_setattr sched_getattr getrandom rseq pidfd_send_signal \
         pidfd_open epoll_pwait2 futex_waitv futex_wake futex_wait futex_requeue uretprobe uprobe rseq_slice_yield",
    ),
    (
        "users and groups: a server acts as its callers",
        "getuid getgid setuid setgid geteuid getegid setreuid setregid getgroups setgroups setresuid getresuid setresgid \
         getresgid setfsuid setfsgid capget capset",
    ),
    ("these can only take rights away", "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
    ("what the process's security module says", "lsm_get_self_attr lsm_list_modules listns"),
    (
        "messages and memory between processes, by the rights of their objects",
        "shmget shmat shmctl semget semop semctl shmdt msgget msgsnd msgrcv msgctl semtimedop mq_open mq_unlink \
         mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
    ),
    (
        "numbers without a call",
        "_sysctl create_module get_kernel_syms query_module getpmsg putpmsg afs_syscall tuxcall security vserver",
    ),
    ("judged by its flags, or unknown to the process", "clone clone3"),
];

#[test]
fn each_call_of_the_headers_is_judged() {
    const HEADER: &str = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
    let Ok(header) = std::fs::read_to_string(HEADER) else {
        return afflux_scratch::skipped!("no {HEADER}: another architecture, or no headers of the C library");
    };
    let left: Vec<&str> = LEFT.iter().flat_map(|(_, names)| names.split_whitespace()).collect();
    let mut judged = 0;
    for line in header.lines() {
        let Some((name, number)) = line.strip_prefix("#define __NR_").and_then(|row| row.split_once(' ')) else {
            continue;
        };
        let number: c_long = number.trim().parse().unwrap();
        let is_refused = REFUSED.contains(&number);
        assert!(is_refused != left.contains(&name), "is {name} ({number}) a call of a server? It stands in {}", {
            if is_refused { "both lists" } else { "no list" }
        });
        judged += 1;
    }
    assert!(judged > 300, "{judged}");
}

/// `cargo test -p afflux-linux --release filter -- --ignored --nocapture`
#[test]
#[ignore = "prints what the filter costs"]
fn what_a_call_costs_with_and_without() {
    fn least() -> Duration {
        let calls = || {
            let began = Instant::now();
            for _ in 0..1_000 {
                let _ = rustix::process::getppid();
            }
            began.elapsed()
        };
        (0..2_000).map(|_| calls()).min().unwrap()
    }
    let before = least();
    filtered(move || eprintln!("1,000 getppid: {before:?} without, {:?} with the filter", least()));
}
