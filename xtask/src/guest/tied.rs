//! A process that does not outlive this one.
//!
//! Owns: the start of such a process.
//! Does not own: its end in an orderly run, by the code that started it.
//! Invariants: the kernel kills it when the thread that started it ends, whatever ended that thread.

use std::process::Command;

/// A command of this program, to be started by a thread that lasts: the kernel looks at that thread, not at the process.
/// setpriv(1) replaces itself by the program, so the child's number is the program's.
pub(super) fn tied(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

#[cfg(test)]
mod tests;
