use std::process::{Command, Stdio};

use afflux_scratch::eventually;

use super::*;

#[test]
fn each_thread_is_told_by_name_and_each_process_below_by_its_words() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("waits_for_stop_and_more".to_owned());
    let thread = thread.spawn(move || stopped.recv().is_ok()).unwrap();
    let mut shell = Command::new("sh").args(["-c", "read a; exit 0"]).stdin(Stdio::piped()).spawn().unwrap();
    // The thread names itself, and the shell is a copy of this process at first.
    let is_told = |said: &str| said.contains("    waits_for_stop_") && said.contains(": sh -c read a; exit 0\n");
    eventually("both are told", || is_told(&of(std::process::id())));
    drop((stop, shell.stdin.take()));
    thread.join().unwrap();
    shell.wait().unwrap();
}

#[test]
fn a_process_that_is_gone_has_no_threads() {
    let mut shell = Command::new("true").spawn().unwrap();
    shell.wait().unwrap();
    assert_eq!(of(shell.id()), format!("  process {}: \n", shell.id()));
}
