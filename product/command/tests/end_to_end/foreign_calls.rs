//! A server cannot make system calls that it never needs, and has no more of root's privileges than it needs.

use std::fs;
use std::process::Command;

use crate::scratch::Scratch;
use crate::server::{Server, afflux};

/// Root's privileges about files and users: CHOWN to FSETID, SETGID, SETUID, IPC_LOCK, MKNOD.
const NEEDED: u64 = 0x1f | 1 << 6 | 1 << 7 | 1 << 14 | 1 << 27;

/// A row of a thread's status; none if the kernel has no such row.
fn row(status: &str, name: &str) -> Option<String> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
}

/// Number of a thread's filters of system calls.
fn filters(status: &str) -> Option<u32> {
    row(status, "Seccomp_filters")?.parse().ok()
}

/// Fails unless every current thread of the server has a filter of its own and can gain no privileges. Of root's
/// privileges it may have only those about files and users.
pub(crate) fn is_confined(server: &Server) {
    let Some(own) = filters(&fs::read_to_string("/proc/self/status").unwrap()) else {
        afflux_scratch::skipped!("this kernel has no filters, or does not count them");
        return;
    };
    let tasks: Vec<_> = fs::read_dir(format!("/proc/{}/task", server.process())).unwrap().collect();
    assert!(tasks.len() > 1);
    for task in tasks {
        // One of the kernel's threads for io_uring may have ended meanwhile.
        let Ok(status) = fs::read_to_string(task.unwrap().path().join("status")) else { continue };
        let status = &status[..];
        assert_eq!(row(status, "Seccomp").unwrap(), "2", "{status}");
        assert_eq!(filters(status), Some(own + 1), "{status}");
        assert_eq!(row(status, "NoNewPrivs").unwrap(), "1", "{status}");
        for set in ["CapEff", "CapPrm"] {
            let held = u64::from_str_radix(&row(status, set).unwrap(), 16).unwrap();
            assert_eq!(held & !NEEDED, 0, "{set} of {status}: {held:x}");
        }
        assert_eq!(row(status, "CapInh").unwrap().trim_start_matches('0'), "", "{status}");
    }
}

#[test]
fn every_thread_of_a_server_is_confined_from_the_start() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    is_confined(&server);
    server.stop();
}

/// Runs a program under a filter that refuses one call, by its number, with an error number.
const WITHOUT_A_CALL: &str = r#"
import ctypes, os, struct, sys
number, errno = int(sys.argv[1]), int(sys.argv[2])
word = lambda code, yes, no, value: struct.pack("HBBI", code, yes, no, value)
code = word(0x20, 0, 0, 0) + word(0x15, 0, 1, number) + word(6, 0, 0, 0x50000 | errno) + word(6, 0, 0, 0x7fff0000)
kept = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(kept))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit(77)
os.execv(sys.argv[3], sys.argv[3:])
"#;

#[test]
fn a_call_that_a_sandbox_refuses_is_told_with_its_name() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    // Without the last ones a start went on, and the server panicked or answered nobody.
    let calls = if cfg!(target_arch = "x86_64") {
        [("statx", 332), ("readlinkat", 267), ("prlimit64", 302), ("ppoll", 271), ("accept4", 288), ("fsync", 74)]
    } else {
        [("statx", 291), ("readlinkat", 78), ("prlimit64", 261), ("ppoll", 73), ("accept4", 242), ("fsync", 82)]
    };
    for (name, number) in calls {
        for errno in [1, 38] {
            let own = afflux(scratch.path());
            let mut command = Command::new("python3");
            command.args(["-c", WITHOUT_A_CALL, &number.to_string(), &errno.to_string()]).arg(own.get_program());
            for (variable, value) in own.get_envs() {
                match value {
                    Some(value) => command.env(variable, value),
                    None => command.env_remove(variable),
                };
            }
            let output = command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--check"]).output();
            let output = match output {
                Ok(output) if output.status.code() == Some(77) => {
                    afflux_scratch::skipped!("this kernel takes no filter");
                    return;
                }
                Err(error) => {
                    afflux_scratch::skipped!("python3 is not installed, Debian package python3: {error}");
                    return;
                }
                Ok(output) => output,
            };
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}: {said}");
            assert!(said.contains(&format!(": {name} (not ")), "{name}: {said}");
            assert!(said.contains("a filter of system calls refuses them"), "{name}: {said}");
        }
    }
}
