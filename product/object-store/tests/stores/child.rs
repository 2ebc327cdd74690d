//! Another process that this test program starts of itself.
//!
//! A child is the same program, with a variable that gives it another task. The test of that name is nothing otherwise.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// The variable that tells a child what to work on.
const WORK: &str = "AFFLUX_STORES_CHILD";
/// The lines of a child, among those of the test's own program.
const SAID: &str = "said ";

/// A running child. It is killed when the value is dropped.
pub(crate) struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the test `name` as a child that works on `work`.
    pub(crate) fn start(name: &str, work: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture", "--quiet"]).env(WORK, work).envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line that the child said, or nothing when it ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // A kill may cut the last line.
            let whole = line.strip_suffix('\n')?;
            if let Some((_, said)) = whole.split_once(SAID) {
                return Some(said.to_owned());
            }
        }
    }

    /// The next line that a frozen child had said, or nothing.
    pub(crate) fn hear_said(&mut self) -> Option<String> {
        let mut pipe = [PollFd::new(self.lines.get_ref(), PollFlags::IN)];
        let is_waiting = poll(&mut pipe, Some(&Timespec::default())).unwrap() > 0;
        if is_waiting || !self.lines.buffer().is_empty() { self.hear() } else { None }
    }

    /// Stops the child, as a suspended machine does.
    pub(crate) fn freeze(&mut self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        let stopped = waitpid(Some(self.pid()), WaitOptions::UNTRACED).unwrap().unwrap().1;
        assert!(stopped.stopped(), "{stopped:?}");
    }

    /// Lets a frozen child go on.
    pub(crate) fn thaw(&mut self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// The child's memory.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills the child at once, as a power failure of the process would.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The work of this process, if it is a child.
pub(crate) fn work() -> Option<String> {
    std::env::var(WORK).ok()
}

/// Says a line to the parent. A child without a parent ends.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let said = format!("{SAID}{line}\n");
    if std::io::stdout().lock().write_all(said.as_bytes()).is_err() {
        std::process::exit(1);
    }
}
