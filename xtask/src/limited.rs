//! Runs test programs with a time limit.
//!
//! Owns: the time limit of a program, its end at the limit.
//! Does not own: the choice of programs; cargo starts each through this one.
//! Invariants: this program exits with the test program's code. A program that exceeds the limit is killed and named,
//! and counts as failed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The longest test program takes some minutes on two quiet cores. A hanging test must not keep a machine busy for a
/// night.
const LIMIT: Duration = Duration::from_secs(40 * 60);
/// Interval at which the program's end is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The exit code for a killed program, as in timeout(1).
const KILLED: u8 = 124;

/// The word that names this task.
pub(crate) const WORD: &str = "limited";

/// A cargo setting that starts each test program through this task.
pub(crate) fn runner() -> Result<String> {
    let own = std::env::current_exe().context("this program's path")?;
    let own = own.to_str().context("this program's path is not text")?;
    // A TOML array of strings; a JSON array of strings has the same form.
    Ok(format!("target.'cfg(all())'.runner = {}", serde_json::json!([own, WORD])))
}

/// Runs a program with its arguments to its end, or until the limit.
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
