//! A process that does not outlive this one.
//!
//! Owns: the start of such a process.
//! Does not own: its end in an orderly run, by the code that started it.
//! Invariants: when the thread that started such a process ends, for whatever reason, the kernel kills the process.

use std::process::Command;

/// A command that starts this program tied to the calling thread. The caller starts it on a thread that lasts, because
/// the kernel looks at that thread and not at the process. setpriv(1) execs the program, so the child is the program.
pub(crate) fn tied(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

#[cfg(test)]
mod tests;
