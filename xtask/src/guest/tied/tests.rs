use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;

use afflux_scratch::eventually;

use super::tied;

const KILL: i32 = 9;

/// The end of a thread stands for that of the process: the kernel makes no difference.
#[test]
fn a_tied_process_is_killed_when_the_thread_that_started_it_is_gone() {
    let started = thread::spawn(|| {
        let mut command = tied("sh");
        command.args(["-c", "echo started; read never"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "started\n");
        child
    });
    let mut child = started.join().unwrap();
    let mut status = None;
    eventually("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.signal()), Some(KILL));
}
