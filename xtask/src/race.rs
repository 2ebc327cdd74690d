//! The race of the library with the kernel's page cache and other caches: built, run, its tables put into
//! notebook/performance.md.
//!
//! Owns: the arguments, the built program, the directory of its files.
//! Does not own: the race itself (the crate in `race`), the insertion of a table into its document (`measured`).
//! Invariants: the files of the race are in a new directory inside the named one, and nothing else is removed. A quick
//! or partial run changes no document.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{fio_engine, measured, repository};

pub(crate) const USAGE: &str = "usage: cargo xtask race [--quick] [--rounds N] [--only PART] \
                                [--half memory|fio|redb] [--profile NAME] [--dir DIR]";

struct RaceOptions {
    /// Whether all parts run.
    whole: bool,
    /// Whether fio takes part.
    needs_fio: bool,
    profile: String,
    directory: PathBuf,
    passed_on: Vec<String>,
}

fn wanted(words: &[&str]) -> Result<RaceOptions> {
    let directory = repository::target().join("race-files");
    let mut wanted =
        RaceOptions { whole: true, needs_fio: true, profile: "release".to_owned(), directory, passed_on: Vec::new() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match *word {
            "--quick" => {
                wanted.whole = false;
                wanted.passed_on.push((*word).to_owned());
            }
            "--rounds" => wanted.passed_on.extend([*word, *value()?].map(str::to_owned)),
            "--only" | "--half" => {
                let part = *value()?;
                wanted.whole = false;
                wanted.needs_fio &= *word != "--half" || part == "fio";
                wanted.passed_on.extend([*word, part].map(str::to_owned));
            }
            "--profile" => (*value()?).clone_into(&mut wanted.profile),
            "--dir" => wanted.directory = PathBuf::from(value()?),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

impl RaceOptions {
    /// The profile for the engine; the workspace has no profile `quick`.
    fn profile_of_engine(&self) -> String {
        if self.profile == "quick" { "demo".to_owned() } else { self.profile.clone() }
    }
}

/// Builds and races. A whole race writes its tables to a file; a part prints them only.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = wanted(words)?;
    let program = build(&wanted.profile)?;
    if wanted.needs_fio {
        // Without the engine the table has a remark, and the kernel's figures.
        if let Err(error) = fio_engine::run(&["--profile", &wanted.profile_of_engine()]) {
            eprintln!("no engine for fio: {error:#}");
        }
    }
    let artifacts = repository::target().join("race");
    let tables = tables(&program, &wanted, &artifacts)?;
    println!("{tables}");
    println!("rows and plots: {}", artifacts.display());
    if wanted.whole {
        let path = measured::write("race", &format!("On {}.\n\n{}", measured::machine(), tables.trim_end()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// Races in a new directory inside the requested one.
fn tables(program: &Path, wanted: &RaceOptions, artifacts: &Path) -> Result<String> {
    fs::create_dir_all(&wanted.directory).with_context(|| wanted.directory.display().to_string())?;
    let scratch = Scratch::guarded(&wanted.directory, "race")?;
    let mut command = Command::new(program);
    command.arg("--dir").arg(scratch.path()).arg("--artifacts").arg(artifacts).args(&wanted.passed_on);
    command.arg("--engine").arg(repository::target().join("fio-engine/afflux.so"));
    let output = command.stderr(Stdio::inherit()).output().context("the race")?;
    if !output.status.success() {
        bail!("the race ended early");
    }
    String::from_utf8(output.stdout).context("the tables")
}

/// Builds the program, which has its own workspace because of its dependencies.
fn build(profile: &str) -> Result<PathBuf> {
    let target = repository::target().join("race");
    let mut command = Command::new("cargo");
    command.args(["build", "--profile", profile, "--target-dir"]).arg(&target);
    let status = command.current_dir(repository::root().join("tests/race")).status().context("cargo build")?;
    if !status.success() {
        bail!("cannot build the race");
    }
    Ok(target.join(if profile == "dev" { "debug" } else { profile }).join("afflux-race"))
}

#[cfg(test)]
mod tests;
