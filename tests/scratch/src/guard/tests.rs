#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Stdio};

use super::{Guard, script};
use crate::Scratch;

/// The shell watches its parent, and this process lives on. So a shell of this test ends without a word.
#[test]
fn a_guard_does_its_work_once_its_process_is_gone() {
    let scratch = Scratch::new(&std::env::temp_dir(), "guard").unwrap();
    let place = scratch.path().join("done");
    let script = script("echo urgent >> \"$1\"", "echo rest >> \"$1\"");
    let mut waits = Command::new("sh");
    waits.args(["-c", &script, "sh"]).arg(&place).stdin(Stdio::piped());
    let mut waits = waits.spawn().unwrap();
    drop(waits.stdin.take());
    waits.wait().unwrap();
    let done = std::fs::read_to_string(&place).unwrap();
    assert_eq!((done.lines().next(), done.lines().last()), (Some("urgent"), Some("rest")), "{done}");
    std::fs::remove_file(&place).unwrap();
    drop(Guard::new("echo urgent >> \"$1\"", "echo rest >> \"$1\"", &[&place]).unwrap());
    assert!(!place.exists(), "a process that cleans up itself leaves the shell nothing to do");
}
