//! A cargo build of a crate of this repository, sources and results below the contender.
//!
//! Owns: the copy of the sources, the command.
//! Does not own: the contender.
//! Invariants: nothing was built before a run. Each run has a directory of its own, and removes it after its time has ended.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::contenders::Running;
use crate::figure::Figure;
use crate::options::Options;

/// The crate, and the smaller one of a quick run.
const CRATE: &str = "afflux-engine";
const QUICK_CRATE: &str = "afflux-frames";
/// This crate is two levels below the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Copies the sources `$1` to `$2`.
const COPY: &str = "tar -C \"$1\" --exclude=./target --exclude=./.git -cf - . | tar -C \"$2\" -xmf -";

pub(crate) fn run(running: &Running, round: usize, options: &Options) -> Result<Figure> {
    let place = running.place.join(format!("build-{round}"));
    fs::create_dir(&place)?;
    let copied = Command::new("sh").args(["-ec", COPY, "sh", ROOT]).arg(&place).status().context("sh")?;
    ensure!(copied.success(), "the sources cannot be copied");
    let before = running.usage();
    let begin = Instant::now();
    build(&place, if options.quick { QUICK_CRATE } else { CRATE })?;
    let value = begin.elapsed().as_secs_f64();
    let used = running.usage().since(before);
    fs::remove_dir_all(&place)?;
    // cargo's own time and switches are not told: its processes are gone.
    Ok(Figure { value, servers_us: used.cpu_ns as f64 / 1e3, ..Figure::default() })
}

fn build(place: &Path, name: &str) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--offline", "-p", name]).current_dir(place).stdin(Stdio::null());
    cargo.env("CARGO_TARGET_DIR", place.join("target")).env_remove("RUSTFLAGS");
    ensure!(cargo.status().context("cargo")?.success(), "the build fails");
    Ok(())
}
