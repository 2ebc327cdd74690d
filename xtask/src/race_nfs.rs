//! Builds the race with nfs-ganesha, runs it in its own network namespace, and writes the table.
//!
//! Owns: the arguments, the programs that are built, the namespaces.
//! Does not own: the race itself (`tests/nfs-check/src/race`), the table's file (`measured`).
//! Invariants: the files of the race are in a new directory inside the named one, and nothing else is removed. A quick
//! run, and one of some cases, writes no table. The servers and the port mapper end with the namespaces.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, bail};

use crate::{ci, measured, repository};

/// An isolated network, with an address besides 127.0.0.1: without one nfs-ganesha's resolver finds nothing.
const SCRIPT: &str = "set -e; ip link set lo up; ip addr add 192.0.2.1/32 dev lo; \
                      mkdir -p /var/lib/nfs/ganesha /run/ganesha /run/rpcbind; exec \"$@\"";

/// The server, the racing client and the bridge, as arguments of `cargo build`.
pub(crate) const PROGRAMS: [&str; 6] =
    ["-p", "afflux-command", "-p", "afflux-nfs-check", "--features", "afflux-nfs-check/fuse"];

/// The loop beside which cold reads are measured.
const BARE_LOOP: [&str; 4] = ["-p", "afflux-linux", "--example", "bare_reads"];

pub(crate) const USAGE: &str = "usage: cargo xtask race-nfs [--quick] [--only WORDS]... [--profile NAME] [--dir DIR]";

struct RaceNfsOptions {
    quick: bool,
    /// Parts of cases' names; with any, no table is written.
    only: Vec<String>,
    profile: String,
    directory: PathBuf,
}

fn wanted(words: &[&str]) -> Result<RaceNfsOptions> {
    let mut wanted = RaceNfsOptions {
        quick: false,
        only: Vec::new(),
        profile: "release".to_owned(),
        directory: repository::target().join("race-nfs"),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match *word {
            "--quick" => wanted.quick = true,
            "--only" => wanted.only.push((*value()?).to_owned()),
            "--profile" => (*value()?).clone_into(&mut wanted.profile),
            "--dir" => wanted.directory = PathBuf::from(value()?),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

/// Builds, races, and writes the table: to its file, or only to standard output if the run is quick.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let wanted = wanted(words)?;
    ci::install_ganesha()?;
    let table = table(&build(&wanted.profile)?, &wanted)?;
    println!("{table}");
    if wanted.quick || !wanted.only.is_empty() {
        return Ok(());
    }
    let path = measured::write(
        "race-nfs",
        &format!("On {}; servers on the first CPU, the client on the second.\n\n{table}", measured::machine()),
    )?;
    println!("written to {}", path.display());
    Ok(())
}

/// A command that runs its arguments in an isolated network where ganesha starts.
pub(crate) fn in_own_network() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT, "sh"]);
    command
}

/// Races in a new directory inside the requested one. After a failure the new directory stays, with its logs.
fn table(programs: &Programs, wanted: &RaceNfsOptions) -> Result<String> {
    fs::create_dir_all(&wanted.directory).with_context(|| wanted.directory.display().to_string())?;
    let scratch = Scratch::new(&wanted.directory, "race-nfs")?;
    let mut command = in_own_network();
    command.arg(&programs.race).arg(scratch.path()).arg(&programs.afflux).arg("--bridge").arg(&programs.bridge);
    command.arg("--bare").arg(&programs.bare);
    for words in &wanted.only {
        command.arg("--only").arg(words);
    }
    if wanted.quick {
        command.arg("--quick");
    }
    let output = command.stderr(Stdio::inherit()).output().context("unshare")?;
    if !output.status.success() {
        bail!("the race ended early; logs are in {}", scratch.keep().display());
    }
    String::from_utf8(output.stdout).context("the table")
}

/// The programs of the race.
struct Programs {
    afflux: PathBuf,
    race: PathBuf,
    bridge: PathBuf,
    bare: PathBuf,
}

fn build(profile: &str) -> Result<Programs> {
    let folder = repository::build(profile, &PROGRAMS)?;
    repository::build(profile, &BARE_LOOP)?;
    Ok(Programs {
        afflux: folder.join("afflux"),
        race: folder.join("nfs-race"),
        bridge: folder.join("fuse-bridge"),
        bare: folder.join("examples/bare_reads"),
    })
}

#[cfg(test)]
mod tests;
