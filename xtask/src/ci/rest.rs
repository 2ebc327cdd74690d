//! The compiler reads the code that no other step of a gate builds.
//!
//! Owns: the list of that code.
//! Does not own: its runs (`nightly`, `races`, `sanitize`).
//! Invariants: each model of threads belongs to a crate of the list, and each lock file of the repository to a
//! workspace that is built.

use std::process::Command;

use anyhow::Result;

use crate::repository::{self, succeeds};

/// The crates with models of threads.
const MODELLED: [&str; 4] = ["afflux-c", "afflux-engine", "afflux-frames", "afflux-pages"];
/// The builds of a sanitizer and of other processors copy a page so.
const MODELS_AND_PORTABLE_COPY: &str = "--cfg loom --cfg afflux_portable_copy";
/// Workspaces that have a lock file of their own.
const APART: [&str; 2] = ["tests/fuzz", "tests/race"];
/// The crates with two forms: the tests of the form without object stores.
const WITHOUT_STORES: &str = "check --package afflux-command --package afflux-object-store --tests";

pub(super) fn check() -> Result<()> {
    cargo(WITHOUT_STORES)?;
    for folder in APART {
        cargo(&format!("check --locked --all-targets --target-dir target --manifest-path {folder}/Cargo.toml"))?;
    }
    let packages = MODELLED.map(|name| format!(" --package {name}")).concat();
    // These flags change each crate, so the build has a directory of its own.
    let words = format!("check --tests --target-dir target/loom{packages}");
    succeeds(command(&words).env("RUSTFLAGS", MODELS_AND_PORTABLE_COPY))
}

fn cargo(words: &str) -> Result<()> {
    succeeds(&mut command(words))
}

fn command(words: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(words.split(' ')).current_dir(repository::root());
    // Any file: nothing is linked, and libFuzzer's C++ takes half a minute.
    command.env("CUSTOM_LIBFUZZER_PATH", repository::root().join("tests/fuzz/Cargo.toml"));
    command
}

#[cfg(test)]
mod tests;
