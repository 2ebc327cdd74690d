//! Whoever takes things down if this process does not live to do it: a shell that waits for its end.
//!
//! Owns: the shell, telling it that there is nothing left to do.
//! Does not own: what it does then (whoever set something up).
//! Invariants: Ctrl-C does not end the shell, too: it has a process group of its own. What a guard does, it
//! does once the process is gone; what is `urgent` also when the process waits in the kernel for what would
//! take long, and so cannot go.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::error::HardwareError;

/// Waits for a line. If there is none because whoever would say it is gone, the rest is done. A process whose
/// first thread is dead and another in the kernel keeps its descriptors open, so that the line's end stays open,
/// too: that is looked for once a second.
const WAIT: &str = r#"( while sleep 1; do
  [ -e "/proc/$PPID" ] || break
  grep -q '^State:[[:space:]]*[ZX]' "/proc/$PPID/status" && break
done; urgent "$@" ) &
read said
told=$?
kill $!
if [ $told -eq 0 ]; then exit 0; fi
urgent "$@""#;

/// What the shell is given.
pub(super) fn script(urgent: &str, rest: &str) -> String {
    format!("urgent() {{\n:\n{urgent}\n}}\n{WAIT}\n{rest}")
}

/// A shell that waits.
pub(super) struct Guard(Child);

impl Guard {
    /// Has `urgent` done first and then `rest`, both with `arguments`, once this process is gone. In a shell.
    pub(super) fn new<T: AsRef<OsStr>>(urgent: &str, rest: &str, arguments: &[T]) -> Result<Self, HardwareError> {
        let mut command = Command::new("sh");
        command.args(["-c", &script(urgent, rest), "sh"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let started = command.spawn();
        started.map(Self).map_err(|error| HardwareError { what: format!("sh could not be started: {error}") })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"done\n"));
        let _ = self.0.wait();
    }
}
