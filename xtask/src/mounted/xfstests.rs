//! xfstests on `afflux mount`: the quick group, or named tests.
//!
//! Owns: the view of the machine in which the suite runs, the verdict on a run.
//! Does not own: the suite, which is built elsewhere and is in no repository; its expected failures
//! (`xtask/mounted/xfstests.txt`); the helpers of mount(8) (`packaging`).
//! Invariants: mounts, helpers and users exist for the suite alone. A failure that is not expected fails the run; an
//! expected one that passes is named.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::health::Messages;
use crate::repository;

/// Arguments: the suite, the place of its files, our programs, our helpers, then the words of the suite.
const SCRIPT: &str = include_str!("../../mounted/xfstests.sh");

/// A line for each test that fails: its name, and why that is right.
const EXPECTED: &str = include_str!("../../mounted/xfstests.txt");

/// Runs the suite's tests of these names, or its quick group.
pub(super) fn run(suite: &Path, built: &Path, directory: &Path, names: &[String]) -> Result<()> {
    let suite = suite.canonicalize().with_context(|| suite.display().to_string())?;
    ensure!(suite.join("check").exists(), "{} is no xfstests", suite.display());
    ensure!(suite.join("ltp/fsstress").exists(), "xfstests is not built: make -C {}", suite.display());
    let messages = Messages::now()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", SCRIPT, "bash"]);
    command.args([&suite, directory, built, &repository::root().join("packaging")]);
    command.args(names).args(names.is_empty().then_some(["-g", "quick"]).into_iter().flatten());
    ensure!(command.status().context("unshare")?.success(), "the suite does not run");
    let log = directory.join("results/check.log");
    let log = fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let outcome = judged(&log, EXPECTED)?;
    let complaints = messages.complaints_since()?;
    complaints.iter().for_each(|line| println!("kernel: {line}"));
    println!("{}", outcome.text);
    if !outcome.unexpected.is_empty() || !complaints.is_empty() {
        bail!("failed without a known reason: {}; {} messages of the kernel", outcome.unexpected, complaints.len());
    }
    Ok(())
}

/// A verdict on a run.
struct Judged {
    text: String,
    /// Failed tests without a reason.
    unexpected: String,
}

/// The tests after a word of the log's last run.
fn after<'a>(log: &'a str, word: &str) -> Vec<&'a str> {
    let last = log.lines().rev().find_map(|line| line.strip_prefix(word));
    last.map(|tests| tests.split_whitespace().collect()).unwrap_or_default()
}

fn judged(log: &str, expected: &str) -> Result<Judged> {
    let (ran, left_out) = (after(log, "Ran:"), after(log, "Not run:"));
    ensure!(!ran.is_empty(), "no test ran");
    let failed = after(log, "Failures:");
    let mut text = format!("{} tests ran, {} do not apply, {} failed", ran.len(), left_out.len(), failed.len());
    let expected: Vec<(&str, &str)> = expected.lines().filter_map(|line| line.split_once(' ')).collect();
    for (test, because) in &expected {
        if failed.contains(test) {
            text += &format!("\nfails as expected: {test}: {because}");
        } else if ran.contains(test) {
            text += &format!("\npasses: {test}, though: {because}");
        }
    }
    let unexpected = failed.into_iter().filter(|test| expected.iter().all(|(known, _)| known != test));
    Ok(Judged { text, unexpected: unexpected.collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests;
