//! Another process that this test program starts of itself.
//!
//! A child is the same program, told by a variable to be something else. The test of that name is nothing otherwise.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

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
