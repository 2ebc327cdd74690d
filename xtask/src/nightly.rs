//! The nightly command runs the long checks one after the other: hours of them, some in builds of their own.
//!
//! Owns: their run.
//! Does not own: the list of them (`xtask/nightly.txt`), the checks of each change (`ci`).
//! Invariants: a step that fails ends no other step. The failed steps are named at the end.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::list;
use crate::repository::{self, succeeds};

/// A command.
struct Step {
    /// The arguments of cargo; after the word `xtask` those of this program.
    words: &'static str,
    /// A variable of its environment, and the value.
    variable: Option<(&'static str, &'static str)>,
}

/// The list of steps.
fn listed() -> impl Iterator<Item = Step> {
    list::rows(include_str!("../nightly.txt"))
        .map(|[words, variable]| Step { words, variable: variable.split_once('=') })
}

/// Each step, as words.
pub(crate) fn steps() -> impl Iterator<Item = &'static str> {
    listed().map(|step| step.words)
}

/// Runs all steps.
pub(crate) fn run() -> Result<()> {
    let own = std::env::current_exe().context("this program's path")?;
    let mut failed = Vec::new();
    for step in listed() {
        if let Err(error) = succeeds(&mut command(&step, &own)) {
            eprintln!("error: {error:#}");
            failed.push(step.words);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} steps failed:\n  {}", failed.len(), listed().count(), failed.join("\n  "))
}

fn command(step: &Step, own: &Path) -> Command {
    let (program, words) = match step.words.strip_prefix("xtask ") {
        Some(words) => (own, words),
        None => (Path::new("cargo"), step.words),
    };
    let mut command = Command::new(program);
    command.args(words.split(' ')).envs(step.variable).current_dir(repository::root());
    command
}

#[cfg(test)]
mod tests;
