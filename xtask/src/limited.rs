//! Programs of tests, each of which ends.
//!
//! Owns: the time that a program may take, its end when that is over.
//! Does not own: which programs run: cargo starts each through this one.
//! Invariants: the program's exit code is this one's. A program that takes longer is killed, named, and counts as failed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The longest takes some minutes on two quiet cores. A test that hangs is not to keep a machine for a night.
const LIMIT: Duration = Duration::from_secs(40 * 60);
/// Between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The exit code of a program that was killed, as of timeout(1).
const KILLED: u8 = 124;

/// The word that names this task.
pub(crate) const WORD: &str = "limited";

/// A setting for cargo by which it starts each program of tests through this task.
pub(crate) fn runner() -> Result<String> {
    let own = std::env::current_exe().context("this program's path")?;
    let own = own.to_str().context("this program's path is not text")?;
    // A TOML array of strings, which a JSON array of strings is, too.
    Ok(format!("target.'cfg(all())'.runner = {}", serde_json::json!([own, WORD])))
}

/// Runs a program with its arguments to its end, or for as long as it may.
pub(crate) fn run(words: &[String]) -> Result<ExitCode> {
    within(LIMIT, words)
}

fn within(limit: Duration, words: &[String]) -> Result<ExitCode> {
    let (program, arguments) = words.split_first().context("usage: xtask limited PROGRAM [ARGUMENT...]")?;
    let begin = Instant::now();
    let mut child = Command::new(program).args(arguments).spawn().with_context(|| program.clone())?;
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
        if begin.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            let seconds = limit.as_secs();
            eprintln!(
                "error: {program} had not ended after {seconds} s and was killed. Above it says which test 'has been \
                 running for over 60 seconds'."
            );
            return Ok(ExitCode::from(KILLED));
        }
        sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests;
