use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::thread::set_capabilities_secure_bits;

use super::*;

fn acting_as(uid: u32, gid: u32, groups: &[u32]) -> Acting {
    let user = Credentials { uid, gid, groups: groups.into() };
    Acting { user: Some(Arc::new(user)), note: ChangeNote::default() }
}

/// Real, effective, saved and file system's user and group of this thread, and its further groups.
fn identity() -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let numbers = |row: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(row)).unwrap();
        line.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    (numbers("Uid:"), numbers("Gid:"), numbers("Groups:"))
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        afflux_scratch::skipped!("only root can act as others");
    }
    root
}

#[test]
fn a_call_is_made_as_the_user_and_the_thread_is_itself_again() {
    if !is_root() {
        return;
    }
    let (before, capabilities) = (identity(), effective_capabilities());
    let acting = acting_as(4321, 1234, &[7, 77]);
    let (during, left) = acting.call(|| Ok((identity(), effective_capabilities()))).unwrap();
    // The kernel asks for the effective user, and no process of that user may send this thread a signal.
    assert_eq!(during, (vec![0, 4321, 0, 4321], vec![before.1[0], 1234, before.1[2], 1234], vec![7, 77]));
    assert_eq!(left, 0, "no capability is left");
    assert_eq!((identity(), effective_capabilities()), (before.clone(), capabilities));
    let error: Result<(), _> = acting.call(|| Err(VolumeError::NotFound));
    assert_eq!((error, identity()), (Err(VolumeError::NotFound), before));
}

/// As a supervisor may start a program: the kernel changes no capability with the user.
#[test]
fn capabilities_that_do_not_follow_the_user_are_taken_and_given_back() {
    if !is_root() {
        return;
    }
    std::thread::spawn(|| {
        if let Err(error) = set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP) {
            return afflux_scratch::skipped!("this thread may not set its secure bits: {error}");
        }
        let (before, capabilities) = (identity(), effective_capabilities());
        let during = acting_as(4321, 1234, &[]).call(|| Ok((identity().0[1], effective_capabilities())));
        assert_eq!(during, Ok((4321, 0)));
        assert_eq!((identity(), effective_capabilities()), (before, capabilities));
    })
    .join()
    .unwrap();
}

#[test]
fn a_panic_leaves_the_thread_itself() {
    if !is_root() {
        return;
    }
    let (before, capabilities) = (identity(), effective_capabilities());
    let acting = acting_as(4321, 1234, &[7]);
    let panicked = catch_unwind(AssertUnwindSafe(|| acting.call(|| -> Result<(), _> { panic!("in the middle") })));
    assert!(panicked.is_err());
    assert_eq!((identity(), effective_capabilities()), (before, capabilities));
}

#[test]
fn what_the_kernel_does_not_take_is_not_called() {
    // No user has this number; without root's rights any other number is refused, too.
    let nobodys = if geteuid().is_root() { ASK } else { geteuid().as_raw() + 1 };
    let before = identity();
    let acting = acting_as(nobodys, 0, &[]);
    let mut called = false;
    let refused = acting.call(|| {
        called = true;
        Ok(())
    });
    assert_eq!((refused, called), (Err(VolumeError::Denied), false));
    assert_eq!(identity(), before);
}

#[test]
fn other_threads_keep_their_identity() {
    if !is_root() {
        return;
    }
    let before = identity();
    let (told, asked) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        asked.recv().unwrap();
        identity()
    });
    let others = acting_as(4321, 1234, &[7]).call(|| {
        told.send(()).unwrap();
        Ok(other.join().unwrap())
    });
    assert_eq!(others.unwrap(), before);
}

/// What the kernel answers to each call about a file and its directory: 0, or an error number.
fn answers(file: &str) -> Vec<(&'static str, i32)> {
    use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, XattrFlags};
    let directory = file.rsplit_once('/').unwrap().0;
    let new = format!("{directory}/afflux-test");
    let open = |flags, mode| fs::open(file, flags | OFlags::CLOEXEC | OFlags::NONBLOCK, mode).map(drop);
    let access = |wanted| fs::accessat(CWD, file, wanted, AtFlags::EACCESS);
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let own = Some(Uid::from_raw(USER));
    let mode = Mode::from_raw_mode(0o666);
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let answers = [
        ("open to read", open(OFlags::RDONLY, Mode::empty())),
        ("open to write", open(OFlags::WRONLY, Mode::empty())),
        ("open for both", open(OFlags::RDWR, Mode::empty())),
        ("open to cut", open(OFlags::WRONLY | OFlags::TRUNC, Mode::empty())),
        ("access to read", access(fs::Access::READ_OK)),
        ("access to write", access(fs::Access::WRITE_OK)),
        ("access to execute", access(fs::Access::EXEC_OK)),
        ("stat", fs::stat(file).map(drop)),
        ("statfs", fs::statfs(file).map(drop)),
        ("read a link", fs::readlink(file, Vec::new()).map(drop)),
        ("list", fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).map(drop)),
        ("chmod", fs::chmod(file, mode)),
        ("chown", fs::chown(file, own, None)),
        ("times", fs::utimensat(CWD, file, &times, AtFlags::empty())),
        ("set an attribute", fs::setxattr(file, "user.a", b"1", XattrFlags::empty())),
        ("set a trusted attribute", fs::setxattr(file, "trusted.a", b"1", XattrFlags::empty())),
        ("remove an attribute", fs::removexattr(file, "user.a")),
        ("create", fs::open(new.as_str(), create, mode).map(drop)),
        ("make a directory", fs::mkdir(new.as_str(), mode)),
        ("make a link", fs::symlink("target", new.as_str())),
        ("make a pipe", fs::mknodat(CWD, new.as_str(), FileType::Fifo, mode, 0)),
        ("make a device", fs::mknodat(CWD, new.as_str(), FileType::CharacterDevice, mode, fs::makedev(1, 3))),
        ("link", fs::link(file, new.as_str())),
        ("rename", fs::rename(file, new.as_str())),
        ("unlink", fs::unlink(file)),
        ("remove a directory", fs::rmdir(directory)),
    ];
    answers.map(|(call, answer)| (call, answer.map_or_else(rustix::io::Errno::raw_os_error, |()| 0))).into()
}

/// A user without a line in the host's files.
const USER: u32 = 4002;

/// The answers that a process of that user gets, for each file.
fn answers_to_a_process(files: &[String]) -> Vec<i32> {
    let (mut from, mut to) = std::io::pipe().unwrap();
    let pipe = to.as_raw_fd() as u32;
    // SAFETY: the child makes calls of the kernel and ends without a return to the test.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: numbers alone are passed. The child uses no other descriptor than the pipe; those of other tests must
        // not live longer through it.
        let is_user = unsafe {
            libc::syscall(libc::SYS_close_range, 3, pipe - 1, 0);
            libc::syscall(libc::SYS_close_range, pipe + 1, u32::MAX, 0);
            libc::syscall(libc::SYS_setgroups, 0, 0) == 0
                && libc::syscall(libc::SYS_setresgid, USER, USER, USER) == 0
                && libc::syscall(libc::SYS_setresuid, USER, USER, USER) == 0
        };
        if is_user {
            let answers = files.iter().flat_map(|file| answers(file));
            let bytes: Vec<u8> = answers.flat_map(|(_, answer)| answer.to_ne_bytes()).collect();
            let _ = std::io::Write::write_all(&mut to, &bytes);
        }
        // SAFETY: it runs no code of the test any more.
        unsafe { libc::_exit(0) };
    }
    drop(to);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut from, &mut bytes).unwrap();
    // SAFETY: it waits for the child made above.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    bytes.chunks(4).map(|word| i32::from_ne_bytes(word.try_into().unwrap())).collect()
}

/// A file of each interface of the kernel that this host has mounted, and of some that files store.
fn files_to_try() -> Vec<String> {
    let mut files: Vec<String> = [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sysrq-trigger",
        "/proc/1/oom_score_adj",
        "/proc/1/mem",
        "/proc/version",
        "/etc/passwd",
        "/etc/shadow",
    ]
    .map(str::to_owned)
    .into();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let points = mounts.lines().filter(|line| !line.starts_with("/dev/")).filter_map(|line| line.split(' ').nth(1));
    for point in points {
        let Ok(entries) = std::fs::read_dir(point) else { continue };
        let entries = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        files.extend(entries.take(3).filter_map(|entry| entry.path().to_str().map(str::to_owned)));
    }
    for directory in ["/sys/kernel/mm/transparent_hugepage", "/sys/power", "/sys/module/fuse/parameters"] {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        files.extend(entries.flatten().filter_map(|entry| entry.path().to_str().map(str::to_owned)));
    }
    files
}

#[test]
fn each_call_gets_the_answer_that_a_process_of_the_user_gets() {
    if !is_root() {
        return;
    }
    let (acting, files) = (acting_as(USER, USER, &[]), files_to_try());
    let expected = answers_to_a_process(&files);
    let of_call = |file: &String| acting.call(|| Ok(answers(file))).unwrap();
    let answered: Vec<_> = files.iter().flat_map(|file| of_call(file).into_iter().map(move |it| (file, it))).collect();
    assert!(answered.len() > 200 && expected.len() == answered.len(), "{} {}", answered.len(), expected.len());
    for ((file, (call, answer)), expected) in answered.into_iter().zip(expected) {
        assert_eq!(answer, expected, "{call}: {file}");
    }
}
