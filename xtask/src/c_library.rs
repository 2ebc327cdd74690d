//! Builds and installs the C interface.
//!
//! Owns: how it is built for use.
//! Does not own: which file goes where (`product/afflux-c/install.sh`), the header (`product/afflux-c/tests/header.rs`).
//! Invariants: nothing is written outside of the build's folder and the prefix.

use std::fs;
use std::path::{self, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{notices, repository};

const USAGE: &str = "usage: cargo xtask install-c [--prefix DIR] [--destdir DIR] [--profile NAME]";

/// The default prefix.
const PREFIX: &str = "/usr/local";

/// Builds the libraries and installs them.
pub(crate) fn install(arguments: &[&str]) -> Result<()> {
    let (mut prefix, mut destdir, mut profile) = (PREFIX, "", "release");
    for pair in arguments.chunks(2) {
        match *pair {
            ["--prefix", value] => prefix = value,
            ["--destdir", value] => destdir = value,
            ["--profile", value] => profile = value,
            _ => bail!("{USAGE}"),
        }
    }
    let prefix = path::absolute(prefix)?;
    let prefix = prefix.to_str().context("--prefix: a path of text is needed")?;
    let libraries = build(profile)?;
    fs::write(libraries.join("NOTICES"), notices::of("afflux-c", "")?)?;
    let script = repository::root().join("product/afflux-c/install.sh");
    succeeds(Command::new(script).arg(&libraries).args([prefix, destdir]))?;
    println!("installed below {destdir}{prefix}; `pkg-config --cflags --libs afflux` says how to compile against it");
    Ok(())
}

/// Builds the libraries; returns their directory.
pub(crate) fn build(profile: &str) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", profile, "--package", "afflux-c", "--lib"]).current_dir(repository::root());
    succeeds(&mut cargo)?;
    Ok(repository::built(profile))
}

/// Runs a command; its output is passed through.
pub(crate) fn succeeds(command: &mut Command) -> Result<()> {
    let line = format!("{command:?}").replace('"', "");
    eprintln!("+ {line}");
    let status = command.status().with_context(|| line.clone())?;
    if !status.success() {
        bail!("failed: {line}");
    }
    Ok(())
}
