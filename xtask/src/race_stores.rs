//! Builds the comparison of ways to an object store, runs it in its own network namespace, and writes the table.
//!
//! Owns: the arguments, the programs that are built, the namespaces.
//! Does not own: the comparison (`tests/nfs-check/src/stores`), the table's file (`measured`).
//! Invariants: the files of the comparison are in a new directory inside the named one, and nothing else is removed. A
//! quick run, and one of some participants, writes no table. All programs and mounts end with the namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, measured, repository};

const SCRIPT: &str = "set -e; ip link set lo up; exec \"$@\"";

/// The server, the comparison and the bridge, as arguments of `cargo build`.
const PROGRAMS: [&str; 6] =
    ["-p", "afflux-command", "-p", "afflux-nfs-check", "--features", "afflux-command/object,afflux-nfs-check/fuse"];

pub(crate) const USAGE: &str = "usage: cargo xtask race-stores [--quick] [--delay-ms N] [--network-mbit-per-s N] \
                                [--minutes N] [--only NAME]... [--profile NAME] [--dir DIR]";

struct RaceStoresOptions {
    /// All participants, in full length.
    whole: bool,
    profile: String,
    directory: PathBuf,
    passed_on: Vec<String>,
}

fn wanted(words: &[&str]) -> Result<RaceStoresOptions> {
    let mut wanted = RaceStoresOptions {
        whole: true,
        profile: "release".to_owned(),
        directory: repository::target().join("race-stores"),
        passed_on: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match *word {
            "--profile" => (*value()?).clone_into(&mut wanted.profile),
            "--dir" => wanted.directory = PathBuf::from(value()?),
            "--quick" => {
                wanted.whole = false;
                wanted.passed_on.push((*word).to_owned());
            }
            "--delay-ms" | "--network-mbit-per-s" | "--minutes" => {
                wanted.passed_on.extend([*word, *value()?].map(str::to_owned))
            }
            "--only" => {
                wanted.whole = false;
                wanted.passed_on.extend([*word, *value()?].map(str::to_owned));
            }
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

/// Builds, compares, and writes the table: to a file, or only to standard output if the run is a part.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = wanted(words)?;
    ci::install_store()?;
    let table = table(&repository::build(&wanted.profile, &PROGRAMS)?, &wanted)?;
    println!("{table}");
    if wanted.whole {
        let path = measured::write("race-stores", &format!("On {}.\n\n{table}", measured::machine()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// Compares in a new directory inside the requested one. After a failure the new directory stays, with its logs.
fn table(programs: &Path, wanted: &RaceStoresOptions) -> Result<String> {
    fs::create_dir_all(&wanted.directory).with_context(|| wanted.directory.display().to_string())?;
    let scratch = Scratch::new(&wanted.directory, "race-stores")?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT, "sh"]);
    command.arg(programs.join("store-race")).arg(scratch.path());
    command.args([programs.join("afflux"), programs.join("fuse-bridge")]).args(&wanted.passed_on);
    let output = command.stderr(Stdio::inherit()).output().context("unshare")?;
    if !output.status.success() {
        bail!("the comparison ended early; logs are in {}", scratch.keep().display());
    }
    String::from_utf8(output.stdout).context("the table")
}

#[cfg(test)]
mod tests;
