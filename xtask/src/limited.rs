//! Runs test programs with a time limit.
//!
//! Owns: the time limit of a program, the kill after the limit, the report about a killed program.
//! Does not own: the choice of programs.
//! Invariants: a program that exceeds the limit is killed, named, and counts as failed. Its output until then is
//! complete.

mod last_words;
mod running;

use std::io::{PipeReader, Read, pipe};
use std::process::{Child, Command, Stdio};
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

/// Runs a program to its end, or until the limit. Returns whether it succeeded, and its two outputs as one text.
pub(crate) fn run(program: Command) -> Result<(bool, String)> {
    within(LIMIT, program)
}

/// Runs the program. After the limit, kills it and appends its last state to its output.
fn within(limit: Duration, mut program: Command) -> Result<(bool, String)> {
    let name = program.get_program().to_string_lossy().into_owned();
    let (reader, writer) = pipe()?;
    program.stdin(Stdio::null()).stderr(writer.try_clone()?).stdout(writer);
    let begin = Instant::now();
    let mut child = program.spawn().with_context(|| name.clone())?;
    // It holds the pipe's writing end: without this the output would never end.
    drop(program);
    let written = Arc::new(Mutex::new(Written::default()));
    let ended = read(reader, Arc::clone(&written));
    let (is_success, notes) = loop {
        if let Some(status) = child.try_wait()? {
            break (status.success(), String::new());
        }
        if begin.elapsed() >= limit {
            let doing = last_words::of(child.id());
            kill(&mut child)?;
            break (false, doing);
        }
        sleep(LOOK_EVERY);
    };
    // The thread sends no message: it drops its sender.
    let _ = ended.recv_timeout(REST_MAX);
    let written = written.lock().unwrap_or_else(PoisonError::into_inner);
    let mut output = String::from_utf8_lossy(&written.output).into_owned();
    if !notes.is_empty() {
        let running = written.running.said();
        output += &format!("error: {name} had not ended after {limit:?} and was killed.\n{running}{notes}");
    }
    Ok((is_success, output))
}

fn kill(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// The output of a program so far.
#[derive(Default)]
struct Written {
    output: Vec<u8>,
    running: Running,
}

/// Starts a thread that reads the output. The receiver disconnects at the output's end.
fn read(mut from: PipeReader, to: Arc<Mutex<Written>>) -> Receiver<()> {
    let (ended, all_read) = channel();
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            let mut written = to.lock().unwrap_or_else(PoisonError::into_inner);
            written.running.note(&bytes[..len]);
            written.output.extend_from_slice(&bytes[..len]);
        }
        drop(ended);
    });
    all_read
}

#[cfg(test)]
mod tests;
