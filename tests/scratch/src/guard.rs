//! A shell that takes things down if this process dies before it does so itself.
//!
//! Owns: the shell, and telling it that nothing is left to do.
//! Does not own: the commands of the shell. They come from the code that set something up.
//! Invariants: Ctrl-C does not end the shell: it has a process group of its own. The shell acts once the process is
//! gone. The `urgent` part is also done while a thread of the process still waits in the kernel.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Waits for a line. If the process dies without writing one, the rest is done. The first thread of a process can die
/// while another is in the kernel. The descriptors stay open then, and the read does not end: the shell looks for that
/// state once a second.
const WAIT: &str = r#"( while sleep 1; do
  [ -e "/proc/$PPID" ] || break
  grep -q '^State:[[:space:]]*[ZX]' "/proc/$PPID/status" && break
done; urgent "$@" ) &
read said
told=$?
kill $!
if [ $told -eq 0 ]; then exit 0; fi
urgent "$@""#;

/// The script of the shell, for tests.
pub fn script(urgent: &str, rest: &str) -> String {
    format!("urgent() {{\n:\n{urgent}\n}}\n{WAIT}\n{rest}")
}

/// A shell that waits.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Has a shell do `urgent` first and then `rest`, both with `arguments`, once this process is gone.
    pub fn new<T: AsRef<OsStr>>(urgent: &str, rest: &str, arguments: &[T]) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", &script(urgent, rest), "sh"]).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let started = command.spawn();
        started.map(Self).map_err(|error| io::Error::new(error.kind(), format!("sh could not be started: {error}")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"done\n"));
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests;
