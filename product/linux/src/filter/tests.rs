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
            ![libc::SYS_unshare, libc::SYS_personality, libc::SYS_acct, libc::SYS_syslog].contains(number)
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
        let scratch = crate::scratch::Scratch::new();
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

#[test]
fn a_jump_reaches_the_end_it_means() {
    let program = program(1);
    assert_eq!(program.len(), REFUSED.len() + 6);
    let refuse = program.len() - 1;
    for (at, one) in program.iter().enumerate().filter(|(_, one)| one.code & 7 == libc::BPF_JMP as u16) {
        let target = |skip: u8| at + 1 + usize::from(skip);
        let (bad, good) = if at == 1 { (one.jf, one.jt) } else { (one.jt, one.jf) };
        assert_eq!((target(bad), target(good)), (refuse, at + 1), "instruction {at}");
    }
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
