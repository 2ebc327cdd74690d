//! Runs of this program's own commands beside the tests, with the programs that the tests have built.
//!
//! Owns: the line of a run that this machine cannot do.
//! Does not own: the choice of runs and their conditions (`ci`), the runs (`mounted`, `guest`), the time limit of each
//! (`limited`).
//! Invariants: the output of a run is printed in one piece. A run with an obstacle counts as a skipped test.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::programs;
use crate::{limited, repository};

/// Runs a command. The error is the last line of its output.
pub(super) fn succeeds(words: &[&str]) -> Result<()> {
    let (is_right, output) = limited::run(command(words)?).with_context(|| words.join(" "))?;
    let last = output.trim().lines().last().unwrap_or_default();
    ensure!(is_right, "{}", last.trim_start_matches("error: "));
    Ok(())
}

/// Runs a command for these names, with the programs of the tests, unless there is an obstacle. Returns the text of a
/// failure.
pub(super) fn with_built(
    what: &str,
    obstacle: Option<String>,
    skipped: &Path,
    words: &[&str],
    names: &[&str],
) -> Result<Option<String>> {
    if let Some(obstacle) = obstacle {
        skip(what, &obstacle, skipped)?;
        return Ok(None);
    }
    let begin = Instant::now();
    let mut command = command(words)?;
    command.arg("--built").arg(repository::built("test")).args(names);
    let (is_right, output) = limited::run(command).with_context(|| what.to_owned())?;
    println!("     Ran the {what} in {} s\n{output}", begin.elapsed().as_secs());
    Ok((!is_right).then(|| programs::failure(what, &output)))
}

/// Counts a run with an obstacle as a skipped test.
pub(super) fn skip(what: &str, obstacle: &str, skipped: &Path) -> Result<()> {
    let line = format!("xtask\t{what}\t{}\n", obstacle.replace(['\t', '\n'], " "));
    Ok(File::options().append(true).create(true).open(skipped)?.write_all(line.as_bytes())?)
}

fn command(words: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("this program's path")?);
    command.args(words);
    Ok(command)
}

#[cfg(test)]
mod tests;
