//! The nightly command runs the long checks one after the other: hours of them, some in builds of their own.
//!
//! Owns: their run.
//! Does not own: the list of them (`xtask/nightly.txt`), the checks of each change (`ci`).
//! Invariants: a step that fails ends no other step. The failed steps are named at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::list;
use crate::repository::{self, succeeds};

const CARGO_HOME: &str = "CARGO_HOME";
/// The value of a variable that stands for an empty folder.
const FRESH: &str = "fresh";

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
        let fresh = step.variable.is_some_and(|(_, value)| value == FRESH).then(empty_home).transpose()?;
        let mut command = command(&step, &own);
        command.envs(fresh.as_ref().map(|home| (CARGO_HOME, home.path())));
        if let Err(error) = succeeds(&mut command) {
            eprintln!("error: {error:#}");
            failed.push(step.words);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} steps failed:\n  {}", failed.len(), listed().count(), failed.join("\n  "))
}

/// A home of cargo's without any crate, as that of a newcomer. It has the settings of this user, such as a registry.
fn empty_home() -> Result<Scratch> {
    let home = Scratch::new(&std::env::temp_dir(), "cargo-home").context("a home for cargo")?;
    let below_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let own = std::env::var_os(CARGO_HOME).map(PathBuf::from).or_else(below_home).unwrap_or_default();
    for name in ["config.toml", "credentials.toml"] {
        if own.join(name).is_file() {
            fs::copy(own.join(name), home.path().join(name)).with_context(|| name.to_owned())?;
        }
    }
    Ok(home)
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
