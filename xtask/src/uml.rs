//! Runs cases with machines of User Mode Linux: Linux's own NFS client, which starts in seconds and without an
//! emulator.
//!
//! Owns: the run of the cases, two at a time, their verdicts and logs; the sources of other projects' suites.
//! Does not own: the words (`words`), the cases and their machines (`tests/uml`), the time limit of each (`limited`),
//! the conditions of a gate (`ci`).
//! Invariants: a case has namespaces of its own for mounts, network and processes, so whatever it started ends with it.
//! A killed run leaves no process behind. Every case gets one verdict. A case that is not there is refused before
//! another one starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use afflux_scratch::Scratch;
use anyhow::{Context, Result, ensure};

use crate::guest::tied::tied;
use crate::repository::{self, output, succeeds};
use crate::words::Uml;
use crate::{ci, limited};

/// Cases that run side by side: they wait for most of their time.
const SIDE_BY_SIDE: usize = 2;
/// Lines of a wrong case that the run shows.
const LAST_LINES: usize = 40;
/// Has all that a case starts end with the case.
const APART: [&str; 8] =
    ["unshare", "--mount", "--propagation=private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
const CASE: &str = r#". "$RIG/lib.sh"; . "$RIG/cases/$0.sh""#;

/// A suite of another project. The case of its name runs it.
struct Suite {
    name: &'static str,
    source: &'static str,
    commit: &'static str,
    /// The folders with programs that the case runs.
    folders: &'static [&'static str],
}

const SUITES: [Suite; 2] = [
    Suite {
        name: "cthon04",
        source: "https://github.com/phdeniel/cthon04",
        commit: "3857ed3cb1e2292065d6a7f6623b0fa2398eaaa7",
        folders: &["basic", "general", "special", "lock"],
    },
    Suite {
        name: "nfs-conformance",
        source: "https://github.com/loghyr/nfs-conformance",
        commit: "6d7cba88e1f115d9bf9a3b76e7aa4b99f2f9b935",
        folders: &[""],
    },
];

/// The folder of the scripts.
fn folder() -> PathBuf {
    repository::root().join("tests/uml")
}

/// The cases of each change.
fn all() -> Result<Vec<String>> {
    let list = fs::read_to_string(folder().join("all")).context("the list of cases")?;
    Ok(list.lines().map(str::to_owned).collect())
}

/// Runs the named cases, or those of each change.
pub(crate) fn run(words: &Uml) -> Result<()> {
    let cases = if words.cases.is_empty() { all()? } else { words.cases.clone() };
    for case in &cases {
        ensure!(script(case).is_file(), "there is no case {case} in {}", folder().join("cases").display());
    }
    ci::install_uml()?;
    for suite in SUITES.iter().filter(|suite| cases.iter().any(|case| case == suite.name)) {
        suite.build()?;
    }
    let built = match &words.built {
        Some(folder) => folder.clone(),
        None => repository::build(words.profile.as_deref().unwrap_or("demo"), &["-p", "afflux-command"])?,
    };
    let program = built.join("afflux").canonicalize().context("the program afflux")?;
    let logs = repository::target().join("uml/logs");
    fs::create_dir_all(&logs).context("a folder for logs")?;
    let (waiting, wrong) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|threads| {
        for _ in 0..SIDE_BY_SIDE {
            threads.spawn(|| {
                while let Some(case) = next() {
                    if let Err(error) = verdict(case, &program, &logs) {
                        eprintln!("{error:#}");
                        wrong.lock().unwrap_or_else(PoisonError::into_inner).push(case.as_str());
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(wrong.is_empty(), "wrong in machines of User Mode Linux: {}", wrong.join(", "));
    Ok(())
}

fn script(case: &str) -> PathBuf {
    folder().join("cases").join(format!("{case}.sh"))
}

/// Runs a case, says its verdict and keeps what it says. The error has the last lines of a wrong one.
fn verdict(case: &str, program: &Path, logs: &Path) -> Result<()> {
    let begin = Instant::now();
    let scratch = Scratch::guarded(&std::env::temp_dir(), "uml")?;
    let mut command = tied(APART[0]);
    command.args(&APART[1..]).args(["bash", "-eu", "-o", "pipefail", "-c", CASE, case]);
    command.env("RIG", folder()).env("PROGRAM", program).env("WORK", scratch.path());
    command.env("SUITES", suites()).current_dir(scratch.path());
    let (is_right, said) = limited::run(command).with_context(|| case.to_owned())?;
    let (seconds, log) = (begin.elapsed().as_secs(), logs.join(format!("{case}.log")));
    fs::write(&log, &said).context("a case's log")?;
    let lines: Vec<&str> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n         ");
    ensure!(is_right, "WRONG    {case} ({seconds} s)\n         {last}\n         all of it: {}", log.display());
    eprintln!("right    {case} ({seconds} s)");
    Ok(())
}

/// The folder of the suites.
fn suites() -> PathBuf {
    repository::target().join("uml/suites")
}

impl Suite {
    /// Gets the suite if it is not there, and builds it.
    fn build(&self) -> Result<()> {
        let place = suites().join(self.name);
        if !place.join(".git").exists() {
            fs::create_dir_all(suites()).context("a folder for suites")?;
            succeeds(Command::new("git").args(["clone", "--quiet", self.source]).arg(&place))?;
        }
        output(Command::new("git").arg("-C").arg(&place).args(["checkout", "--quiet", self.commit]))?;
        for folder in self.folders {
            // Its warnings are of no use here.
            output(Command::new("make").args(["--silent", "-C"]).arg(place.join(folder)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
