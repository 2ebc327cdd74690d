//! Ending in order, and at once.

use std::fs;

use rustix::process::Signal;

use crate::client::Client;
use crate::hanging::Frozen;
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{LAZY, Server, eventually};

#[test]
fn a_signal_writes_everything_and_ends_with_0() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && is_hangup_ignored() {
            afflux_scratch::skipped!("SIGHUP is ignored here (nohup)");
            continue;
        }
        let scratch = Scratch::new();
        let data = scratch.directory("data");
        let server = Server::start(scratch.path(), &[&data], &LAZY);
        let mut client = Client::mount(&server);
        let root = client.root();
        let bytes = Bytes::new(9).vec(5_000_000);
        client.write_file_uncommitted(&root, "a", &bytes);
        let control = server.control.clone();
        server.signal(signal);
        let ended = server.wait();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(fs::read(data.join("a")).unwrap() == bytes);
        assert!(!control.exists(), "the control socket is gone");
        assert!(!ended.stderr.contains('\x1b'), "no progress bar when piped: {ended:?}");
        let last = ended.stdout.lines().last().unwrap_or_default();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!((&last["is"], &last["failed"]), (&"drained".into(), &serde_json::json!([])));
    }
}

/// Whether children inherit an ignored SIGHUP.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

/// As with `afflux serve DIR 2>&1 | tee log`, where Ctrl-C also ends the reader of the output.
#[test]
fn everything_is_written_though_nobody_reads_what_is_said() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let control = scratch.path().join("control.sock");
    let (read_end, write_end) = std::io::pipe().unwrap();
    let mut command = crate::server::afflux(scratch.path());
    command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--json", "--control"]);
    command.arg(&control).args(LAZY).stderr(write_end);
    let mut server = Server::spawn_logging(command, control, scratch.path());
    drop(read_end);
    server.close_stdout();
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(9).vec(5_000_000);
    client.write_file_uncommitted(&root, "a", &bytes);
    server.signal(Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(data.join("a")).unwrap() == bytes);
}

#[test]
fn a_second_signal_ends_at_once_and_names_what_was_not_written() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(_mount) = Mount::ext4(&scratch.path().join("image"), &data, 64 << 20) else { return };
    let log = fs::File::create(scratch.path().join("log")).unwrap();
    let control = scratch.path().join("control.sock");
    let mut command = crate::server::afflux(scratch.path());
    command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0", "--json", "--control"]);
    command.arg(&control).args(LAZY).stderr(log);
    let server = Server::spawn_logging(command, control, scratch.path());
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "unlucky", &Bytes::new(9).vec(5_000_000));
    let Some(frozen) = Frozen::freeze(&data) else { return };
    let said = || fs::read_to_string(scratch.path().join("log")).unwrap();
    server.signal(Signal::INT);
    eventually("the first signal is noticed", || said().contains("Stopping"));
    server.signal(Signal::INT);
    eventually("the second signal is noticed", || said().contains("not written"));
    // A write inside the kernel cannot be cancelled while the file system is frozen.
    drop(frozen);
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = said();
    assert!(said.contains("unlucky") && said.contains("5.0"), "{said}");
}
