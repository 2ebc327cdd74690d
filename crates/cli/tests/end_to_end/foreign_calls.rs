//! A server may not make the system calls that it never needs.

use std::fs;

use crate::scratch::Scratch;
use crate::server::Server;

/// How many filters of system calls a thread is under; nothing where the kernel does not say.
fn filters(status: &str) -> Option<u32> {
    let text = fs::read_to_string(status).unwrap();
    text.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok())
}

#[test]
fn every_thread_of_a_server_is_under_one_filter_more_than_who_started_it() {
    let Some(own) = filters("/proc/self/status") else {
        eprintln!("skipped: this kernel has no filters, or does not count them");
        return;
    };
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let tasks: Vec<_> = fs::read_dir(format!("/proc/{}/task", server.process())).unwrap().collect();
    assert!(tasks.len() > 1);
    for task in tasks {
        let status = task.unwrap().path().join("status");
        assert_eq!(filters(status.to_str().unwrap()), Some(own + 1), "{}", status.display());
    }
    server.stop();
}
