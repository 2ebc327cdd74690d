//! Builds and installs the C interface.
//!
//! Owns: how it is built for use.
//! Does not own: which file goes where (`product/afflux-c/install.sh`), the header
//! (`product/afflux-c/tests/header.rs`).
//! Invariants: nothing is written outside of the build's folder and the prefix.

use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::notices;
use crate::repository::{self, succeeds};
use crate::words::InstallC;

/// Builds the libraries and installs them.
pub(crate) fn install(words: &InstallC) -> Result<()> {
    let prefix = path::absolute(words.prefix.as_deref().unwrap_or(Path::new("/usr/local")))?;
    let destdir = words.destdir.as_deref().unwrap_or(Path::new(""));
    let libraries = build(words.profile.as_deref().unwrap_or("release"))?;
    fs::write(libraries.join("NOTICES"), notices::of("afflux-c", "")?)?;
    let script = repository::root().join("product/afflux-c/install.sh");
    succeeds(Command::new(script).arg(&libraries).args([&prefix, destdir]))?;
    println!(
        "installed below {}{}; `pkg-config --cflags --libs afflux` says how to compile against it",
        destdir.display(),
        prefix.display()
    );
    Ok(())
}

/// Builds the libraries; returns their directory.
pub(crate) fn build(profile: &str) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", profile, "--package", "afflux-c", "--lib"]).current_dir(repository::root());
    succeeds(&mut cargo)?;
    Ok(repository::built(profile))
}
