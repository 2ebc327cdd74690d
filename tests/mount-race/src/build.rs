//! A cargo build of a crate of this repository, sources and results below the contender.
//!
//! Owns: the copy of the sources, the command.
//! Does not own: the contender.
//! Invariants: nothing was built before a run. Each run has a directory of its own, and removes it after its time has
//! ended.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::contenders::Running;
use crate::figure::Figure;

/// The crate, and the smaller one of a quick run.
const CRATE: &str = "afflux-engine";
const QUICK_CRATE: &str = "afflux-frames";
/// This crate is two levels below the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Copies the sources `$1` to `$2`.
const COPY: &str = "tar -C \"$1\" --exclude=./target --exclude=./.git -cf - . | tar -C \"$2\" -xmf -";

pub(crate) fn run(running: &Running, round: usize, quick: bool) -> Result<Figure> {
    let place = running.place.join(format!("build-{round}"));
    fs::create_dir(&place)?;
    let copied = Command::new("sh").args(["-ec", COPY, "sh", ROOT]).arg(&place).status().context("sh")?;
    ensure!(copied.success(), "the sources cannot be copied");
    let begun = running.measured();
    build(&place, if quick { QUICK_CRATE } else { CRATE })?;
    let (elapsed, used) = begun.end();
    let used = Figure::used(used, 1);
    fs::remove_dir_all(&place)?;
    // cargo's own time and switches are not told: its processes are gone.
    Ok(Figure { value: elapsed.as_secs_f64(), servers_us: used.servers_us, ..Figure::default() })
}

fn build(place: &Path, name: &str) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--offline", "-p", name]).current_dir(place).stdin(Stdio::null());
    cargo.env("CARGO_TARGET_DIR", place.join("target")).env_remove("RUSTFLAGS");
    ensure!(cargo.status().context("cargo")?.success(), "the build fails");
    Ok(())
}
