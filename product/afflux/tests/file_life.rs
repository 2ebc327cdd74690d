//! The system calls of a cached file's life: it is opened, read and closed.

use std::path::Path;
use std::process::Command;

use afflux::{Cache, OpenOptions};

/// Paths that are not there; a look for one marks a place in the trace.
const BEGIN: &str = "/afflux-begin";
const END: &str = "/afflux-end";

/// The calls of an opening, a cached read and a close. The two `F_OFD_SETLK` are the claim, which keeps the file from
/// other caches that write.
const OPEN_READ_CLOSE: [&str; 6] = ["openat", "statx", "F_SETFL", "F_OFD_SETLK", "F_OFD_SETLK", "close"];

/// The traced program: this test alone, in a process of its own.
#[test]
#[ignore = "strace runs it for the other test"]
fn traced() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::write(&path, [7; 8192]).unwrap();
    let cache = Cache::builder().memory(16 << 20).build().unwrap();
    let mut bytes = [0; 4096];
    let mut life = |options: OpenOptions| {
        let file = cache.open(&path, options).unwrap();
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
        drop(file);
    };
    for options in [OpenOptions::new().read(true), OpenOptions::new().read(true).write(true)] {
        life(options.clone());
        assert!(!Path::new(BEGIN).exists());
        life(options);
        assert!(!Path::new(END).exists());
    }
}

/// The calls of the marking thread between the marks, one list for each pair of marks. `fcntl` is named by its command.
fn calls(trace: &str) -> Vec<Vec<String>> {
    let (mut lives, mut thread) = (Vec::<Vec<String>>::new(), None);
    for line in trace.lines() {
        let Some((by, call)) = line.split_once(' ').map(|(by, call)| (by, call.trim_start())) else { continue };
        // The second line of a call that was interrupted by another thread's.
        if call.starts_with("<... ") {
            continue;
        }
        if call.contains(BEGIN) {
            thread = Some(by);
            lives.push(Vec::new());
        } else if call.contains(END) {
            thread = None;
        } else if let (true, Some(life)) = (thread == Some(by), lives.last_mut()) {
            let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
            let command = arguments.split([',', ')']).nth(1).map_or("", str::trim);
            // The standard library looks at descriptors before it closes them, in debug builds.
            match (name, command) {
                ("fcntl", "F_GETFD") => {}
                ("fcntl", command) => life.push(command.to_owned()),
                _ => life.push(name.to_owned()),
            }
        }
    }
    lives
}

#[test]
fn a_cached_file_is_opened_read_and_closed_by_six_system_calls() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    if Command::new("strace").arg("--version").output().is_err() {
        afflux_scratch::skipped!("strace is not installed");
        return;
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-s", "64", "-o"]).arg(&trace).arg(std::env::current_exe().unwrap());
    let output = strace.args(["--exact", "traced", "--ignored"]).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("ptrace") {
        afflux_scratch::skipped!("processes may not be traced here");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let lives = calls(&std::fs::read_to_string(trace).unwrap());
    assert_eq!(lives, [OPEN_READ_CLOSE; 2]);
}
