//! The licences, sources and known faults of others' crates, by `cargo deny`.
//!
//! Owns: getting that program, the order of its checks, the words where the list of faults is not reachable.
//! Does not own: which licences and sources are right (`deny.toml`).
//! Invariants: a list of faults that cannot be read is a failure: nobody takes it for an empty one.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::ci;
use crate::repository::{self, succeeds};

const PROGRAM: &str = "cargo-deny@0.20.2";
const FAULTS: &str = "https://github.com/RustSec/advisory-db";

/// Checks licences and sources, then known faults.
pub(crate) fn check() -> Result<()> {
    let program = program()?;
    let deny = |what: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("check").args(what).current_dir(repository::root());
        succeeds(&mut command)
    };
    let terms = deny(&["licenses", "bans", "sources"]);
    let faults = check_readable(FAULTS).and_then(|()| deny(&["advisories"]));
    match (terms, faults) {
        (Err(terms), Err(faults)) => bail!("{terms:#}; {faults:#}"),
        (terms, faults) => terms.and(faults),
    }
}

/// The program, from the path or from crates.io: without optimization, which takes longer than its run.
fn program() -> Result<PathBuf> {
    let own = ci::own_tools().join("cargo-deny");
    if ci::on_path("cargo-deny") && !own.exists() {
        return Ok("cargo-deny".into());
    }
    if !own.exists() {
        let root = own.parent().and_then(|folder| folder.parent()).context("a folder of tools")?;
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(root).arg(PROGRAM);
        succeeds(&mut cargo)?;
    }
    Ok(own)
}

/// Whether git can read the list from here. `cargo deny` fetches it with git.
fn check_readable(list: &str) -> Result<()> {
    let mut git = Command::new("git");
    git.args(["ls-remote", "--exit-code", list, "refs/heads/main"])
        .envs([("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
    let answer = git.stdin(Stdio::null()).output().context("git")?;
    if answer.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    let said = said.lines().next().unwrap_or("it has no branch main");
    bail!(
        "known faults of others' crates were not checked: git cannot read {list} ({said}). \
         For a copy of it: git config --global url.COPY.insteadOf {list}"
    )
}

#[cfg(test)]
mod tests;
