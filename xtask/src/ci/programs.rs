//! Runs the test programs of one build, two at a time: many of them wait for disks and clients for most of their time.
//!
//! Owns: the list of programs as cargo reports it, the order of their output.
//! Does not own: the time limit of a program (`limited`).
//! Invariants: each program runs in the folder of its package, where cargo would run it. The output of a program is
//! printed in one piece after its end; a terminal also gets a line at its beginning. A program that fails ends no other
//! one. What failed is told again by the caller: the first of a long run's lines may be lost.

use std::io::{IsTerminal, stderr};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::totals::Totals;
use crate::{limited, repository};

/// Programs that run side by side.
const SIDE_BY_SIDE: usize = 2;

/// Lines of a failed program that are told again.
const LINES_MAX: usize = 120;

/// Kinds of programs that are built as a check only.
const NOT_RUN: [&str; 2] = ["bench", "example"];

/// A test program that cargo has built.
#[derive(Debug, PartialEq)]
pub(super) struct Program {
    pub(super) executable: PathBuf,
    /// Its main source file, by which a reader knows it.
    pub(super) source: PathBuf,
    package: PathBuf,
}

/// What a run of programs came to.
#[derive(Default)]
pub(super) struct Outcome {
    /// A text for each failure: of the build, a program, or what ran beside.
    pub(super) failures: Vec<String>,
    pub(super) totals: Totals,
}

/// Builds what `cargo` tests. None: it cannot be built, and cargo has said why.
pub(super) fn built(mut cargo: Command) -> Result<Option<Vec<Program>>> {
    let built =
        cargo.args(["--no-run", "--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit()).output();
    let built = built.context("cargo test")?;
    Ok(built.status.success().then(|| listed(&String::from_utf8_lossy(&built.stdout))))
}

/// Runs each program by the command for it, and `beside` on a thread of its own meanwhile.
pub(super) fn run<'a>(
    programs: impl ExactSizeIterator<Item = &'a Program> + Send,
    command: impl Fn(&Program) -> Command + Sync,
    beside: impl FnOnce() -> Result<Vec<String>> + Send,
) -> Result<Outcome> {
    let count = programs.len();
    let (waiting, outcome) = (Mutex::new(programs.zip(1..)), Mutex::new(Outcome::default()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let failed_beside = thread::scope(|threads| {
        let beside = threads.spawn(beside);
        for _ in 0..SIDE_BY_SIDE {
            threads.spawn(|| {
                while let Some((program, number)) = next() {
                    if stderr().is_terminal() {
                        eprintln!(" Running {number} of {count}: {}", program.name());
                    }
                    let (failure, totals) = execute(program, command(program));
                    let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                    outcome.failures.extend(failure);
                    outcome.totals = outcome.totals.plus(totals);
                }
            });
        }
        beside.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let Outcome { failures, totals } = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { failures: [failed_beside, failures].concat(), totals })
}

/// The test programs among cargo's messages, a message each line.
fn listed(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect()
}

fn program(message: &Value) -> Option<Program> {
    let kind = message["target"]["kind"][0].as_str()?;
    if NOT_RUN.contains(&kind) || message["profile"]["test"] != Value::Bool(true) {
        return None;
    }
    let path = |value: &Value| value.as_str().map(PathBuf::from);
    Some(Program {
        executable: path(&message["executable"])?,
        source: path(&message["target"]["src_path"])?,
        package: path(&message["manifest_path"])?.parent()?.to_owned(),
    })
}

impl Program {
    /// The source file, seen from the workspace, and the program.
    fn name(&self) -> String {
        let source = self.source.strip_prefix(repository::root()).unwrap_or(&self.source);
        format!("{} ({})", source.display(), self.executable.display())
    }
}

/// Runs the program by a command to its end, then prints its output. Returns the text of a failure, to tell it again.
fn execute(program: &Program, mut command: Command) -> (Option<String>, Totals) {
    let begin = Instant::now();
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
    let (is_success, output) = limited::run(command).unwrap_or_else(|error| (false, format!("error: {error:#}\n")));
    println!("     Ran {} in {} s\n{output}", program.name(), begin.elapsed().as_secs());
    ((!is_success).then(|| failure(&program.name(), &output)), Totals::of(&output))
}

/// A failed program's text about its failed tests. A program without such a text gives its last lines.
pub(super) fn failure(name: &str, output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    let told = match lines.iter().position(|line| *line == "failures:") {
        Some(first) => &lines[first..lines.len().min(first + LINES_MAX)],
        None => &lines[lines.len().saturating_sub(LINES_MAX)..],
    };
    format!("error: {name} failed:\n{}\n", told.join("\n"))
}

#[cfg(test)]
mod tests;
