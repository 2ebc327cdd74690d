//! Builds the comparison of killed servers, runs it in its own network namespace, and writes the table.
//!
//! Owns: the arguments, the programs that are built.
//! Does not own: the comparison itself (`tests/nfs-check/src/kills`), the namespaces (`race_nfs`). The kernel's
//! server ends only with its kernel: case `resets` of `guest`.
//! Invariants: the files are in a new directory inside the named one, and nothing else is removed.

use std::path::PathBuf;
use std::process::Stdio;

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, measured, race_nfs, repository};

const USAGE: &str = "usage: cargo xtask race-kills [--rounds N] [--json] [--profile NAME] [--built DIR] [--dir DIR]";

struct RaceKillsOptions {
    rounds: u64,
    json: bool,
    profile: String,
    /// A directory with the programs, which are not built then.
    built: Option<PathBuf>,
    directory: PathBuf,
}

fn wanted(words: &[&str]) -> Result<RaceKillsOptions> {
    let mut wanted = RaceKillsOptions {
        rounds: 20,
        json: false,
        profile: "release".to_owned(),
        built: None,
        directory: repository::target().join("race-kills"),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match *word {
            "--rounds" => wanted.rounds = value()?.parse().context(USAGE)?,
            "--json" => wanted.json = true,
            "--profile" => (*value()?).clone_into(&mut wanted.profile),
            "--built" => wanted.built = Some(PathBuf::from(value()?)),
            "--dir" => wanted.directory = PathBuf::from(value()?),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

/// Builds, kills, and writes the table to its file, or JSON to standard output alone.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = wanted(words)?;
    ci::install_ganesha()?;
    let folder = match &wanted.built {
        Some(folder) => folder.clone(),
        None => repository::build(&wanted.profile, &["-p", "afflux-command", "-p", "afflux-nfs-check"])?,
    };
    std::fs::create_dir_all(&wanted.directory).with_context(|| wanted.directory.display().to_string())?;
    let scratch = Scratch::new(&wanted.directory, "race-kills")?;
    let mut command = race_nfs::in_own_network();
    command.arg(folder.join("kill-race")).arg(scratch.path()).arg(folder.join("afflux"));
    command.arg(wanted.rounds.to_string()).args(wanted.json.then_some("--json"));
    let output = command.stderr(Stdio::inherit()).output().context("unshare")?;
    if !output.status.success() {
        bail!("the comparison ended early; logs are in {}", scratch.keep().display());
    }
    let figures = String::from_utf8(output.stdout).context("the figures")?;
    println!("{figures}");
    if wanted.json {
        return Ok(());
    }
    let path = measured::write("race-kills", &format!("On {}.\n\n{figures}", measured::machine()))?;
    println!("written to {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests;
