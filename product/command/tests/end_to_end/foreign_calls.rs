//! A server cannot make system calls that it never needs, and has no more of root's privileges than it needs.

use std::fs;

use crate::scratch::Scratch;
use crate::server::Server;

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
