//! Runs test programs with a time limit.
//!
//! Owns: the time limit of a program, the kill after the limit, the report about a killed program.
//! Does not own: the choice of programs: cargo starts each program through this task.
//! Invariants: the task exits with the program's exit code. A program that exceeds the limit is killed, named, and
//! counts as failed. The task passes output on as it comes, so that a killed program's output is complete.

mod last_words;
mod running;

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use running::Running;

/// The longest program takes a few minutes on two quiet cores. A test that hangs must not keep a machine for longer.
const LIMIT: Duration = Duration::from_secs(12 * 60);
/// Interval between two checks whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the rest of a program's output may take after the program's end. A process that the program left behind may
/// keep the pipe open.
const REST_MAX: Duration = Duration::from_secs(2);
/// The exit code of a program that was killed, as of timeout(1).
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
    within(LIMIT, words, std::io::stdout(), &mut std::io::stderr())
}

/// Runs the program and passes its standard output on to `output`. After the limit, kills the program and writes its
/// last state to `notes`.
fn within(
    limit: Duration,
    words: &[String],
    output: impl Write + Send + 'static,
    notes: &mut dyn Write,
) -> Result<ExitCode> {
    let (program, arguments) = words.split_first().context("usage: xtask limited PROGRAM [ARGUMENT...]")?;
    let begin = Instant::now();
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().with_context(|| program.clone())?;
    let running = Arc::new(Mutex::new(Running::default()));
    let passed_on = pass_on(child.stdout.take().context("its output")?, output, Arc::clone(&running));
    loop {
        if let Some(status) = child.try_wait()? {
            wait_for_rest(&passed_on);
            let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
        if begin.elapsed() >= limit {
            let doing = last_words::of(child.id());
            kill(&mut child)?;
            wait_for_rest(&passed_on);
            let running = running.lock().unwrap_or_else(PoisonError::into_inner).said();
            writeln!(notes, "error: {program} had not ended after {limit:?} and was killed.\n{running}{doing}")?;
            return Ok(ExitCode::from(KILLED));
        }
        sleep(LOOK_EVERY);
    }
}

fn kill(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Starts a thread that passes the output on. The receiver disconnects when the thread has passed all of the output on,
/// or cannot write.
fn pass_on(mut from: ChildStdout, mut to: impl Write + Send + 'static, running: Arc<Mutex<Running>>) -> Receiver<()> {
    let (ended, passed_on) = channel();
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let read = &bytes[..len];
            running.lock().unwrap_or_else(PoisonError::into_inner).note(read);
            if to.write_all(read).and_then(|()| to.flush()).is_err() {
                break;
            }
        }
        drop(ended);
    });
    passed_on
}

/// The thread sends no message: it drops its sender.
fn wait_for_rest(passed_on: &Receiver<()>) {
    let _ = passed_on.recv_timeout(REST_MAX);
}

#[cfg(test)]
mod tests;
