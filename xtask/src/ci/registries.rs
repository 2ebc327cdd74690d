//! Programs for tests that Debian has no package of: two small object stores, from PyPI and from npm.
//!
//! Owns: their versions, where they are installed.
//! Does not own: the tests that start them.
//! Invariants: they are below the build's folder, and nothing else of the machine changes.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::repository::{self, succeeds};

const MOTO: &str = "moto[s3,server]==5.2.5";
const AZURITE: &str = "azurite@3.35.0";

fn python() -> PathBuf {
    repository::target().join("tools/python")
}

fn node() -> PathBuf {
    repository::target().join("tools/node")
}

/// The programs' folders.
fn folders() -> [PathBuf; 2] {
    [python().join("bin"), node().join("node_modules/.bin")]
}

/// Installs those that are neither on the path nor here.
pub(super) fn install() -> Result<()> {
    let path = path()?;
    let is_there = |program: &str| env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !is_there("moto_server") {
        succeeds(Command::new("virtualenv").arg("--quiet").arg(python()))?;
        succeeds(Command::new(python().join("bin/pip")).args(["install", "--quiet", MOTO]))?;
    }
    if !is_there("azurite-blob") {
        let words = ["install", "--no-audit", "--no-fund", AZURITE, "--prefix"];
        succeeds(Command::new("npm").args(words).arg(node()))?;
    }
    Ok(())
}

/// The path on which tests find them, after those of the machine.
pub(super) fn path() -> Result<OsString> {
    let machines = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(env::split_paths(&machines).chain(folders()))?)
}
