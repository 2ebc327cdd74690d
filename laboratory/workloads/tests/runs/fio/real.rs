//! Real fio and its reports.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

use afflux_scratch::Scratch;

use super::VARIABLE;

/// fio's report of a job.
#[derive(Debug)]
pub(crate) struct RealJob {
    pub(crate) name: String,
    pub(crate) error: u64,
    /// Read, written and trimmed.
    pub(crate) bytes: [u64; 3],
    pub(crate) calls: [u64; 3],
    /// `fsync` calls during the job; fio counts no others.
    pub(crate) syncs: u64,
    pub(crate) runtime_ms: u64,
}

/// Whether fio is installed; reports if not.
#[allow(clippy::print_stdout, reason = "it says why a test passes without having looked")]
pub(crate) fn is_installed() -> bool {
    let installed = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if !installed {
        afflux_scratch::skipped!("fio is not installed (Debian package fio)");
    }
    installed
}

/// Runs fio, which now and then waits for one of its own threads for ever: then it is killed and run again. Its output
/// goes to files, since a remaining process would hold a pipe open.
fn fio(arguments: &[&str], directory: &Path) -> Output {
    /// Exit codes of coreutils' `timeout` after a kill. The timeout is a guard against hangs, far above the time of a
    /// file here.
    const KILLED: [i32; 2] = [124, 137];
    for _ in 0..3 {
        let said = scratch("said");
        let [out, errors] = ["out", "errors"].map(|name| said.path().join(name));
        let create = |path: &Path| File::create(path).expect("a file in the scratch directory");
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", "120", "fio"]).args(arguments).env(VARIABLE.0, VARIABLE.1);
        let status = command.current_dir(directory).stdout(create(&out)).stderr(create(&errors)).status();
        let status = status.expect("fio runs");
        if status.code().is_some_and(|code| !KILLED.contains(&code)) {
            let [stdout, stderr] = [out, errors].map(|path| std::fs::read(path).expect("what fio said"));
            return Output { status, stdout, stderr };
        }
    }
    panic!("fio {arguments:?} hung three times");
}

/// Whether fio accepts the file.
pub(crate) fn accepts(directory: &Path, file: &str) -> Result<(), String> {
    let output = fio(&["--parse-only", file], directory);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(told) }
}

/// Whether fio completes the file.
pub(crate) fn runs(directory: &Path, file: &str) -> bool {
    fio(&["--output-format=json", file], directory).status.success()
}

/// A directory that is gone when the value is.
pub(crate) fn scratch(name: &str) -> Scratch {
    Scratch::new(&std::env::temp_dir(), &format!("fio-{name}")).expect("a scratch directory")
}

/// Runs a job file in its own directory.
pub(crate) fn run(directory: &Path, file: &str) -> Vec<RealJob> {
    let scratch = scratch(file);
    for entry in std::fs::read_dir(directory).expect("the jobs are there").filter_map(Result::ok) {
        std::fs::copy(entry.path(), scratch.path().join(entry.file_name())).expect("copies");
    }
    let output = fio(&["--output-format=json", file], scratch.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{file}: {text}{}", String::from_utf8_lossy(&output.stderr));
    jobs(&text)
}

/// Runs the text of a job file under strace. Also returns the numbers of its `fsync` and `fdatasync` calls. None, with
/// a message, if nothing can be traced here.
#[allow(clippy::print_stdout, reason = "it says why a test passes without having looked")]
pub(crate) fn run_traced(text: &str) -> Option<(Vec<RealJob>, (u64, u64))> {
    let scratch = scratch("traced");
    let at = |name: &str| scratch.path().join(name);
    std::fs::write(at("jobs.fio"), text).expect("writes");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "240", "strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]);
    command.arg(at("trace")).args(["fio", "--output-format=json", "--output=report", "jobs.fio"]);
    let output = command.current_dir(scratch.path()).output().expect("timeout runs");
    let traced = std::fs::read_to_string(at("trace")).unwrap_or_default();
    let report = std::fs::read_to_string(at("report")).unwrap_or_default();
    if !output.status.success() || report.is_empty() {
        afflux_scratch::skipped!("strace does not run fio here: {}", String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    let calls = |name: &str| traced.lines().filter(|line| line.contains(name) && !line.contains("resumed")).count();
    Some((jobs(&report), (calls(" fsync(") as u64, calls(" fdatasync(") as u64)))
}

/// The jobs in fio's JSON. Its layout is fixed, one key per line, so that no JSON parser is needed: a job's keys have
/// their own depth.
fn jobs(text: &str) -> Vec<RealJob> {
    let mut jobs: Vec<RealJob> = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let (key, value) = (key.trim().trim_matches('"'), value.trim().trim_end_matches(','));
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        if depth == 6 && key == "jobname" {
            let name = value.trim_matches('"').to_owned();
            jobs.push(RealJob { name, error: 0, bytes: [0; 3], calls: [0; 3], syncs: 0, runtime_ms: 0 });
        }
        let Some(job) = jobs.last_mut() else { continue };
        if depth == 6 {
            key.clone_into(&mut section);
        }
        let way = ["read", "write", "trim"].iter().position(|way| *way == section).unwrap_or(0);
        match (depth, section.as_str(), key) {
            (6, _, "error") => job.error = number(),
            (6, _, "job_runtime") => job.runtime_ms = number(),
            (8, "read" | "write" | "trim", "io_bytes") => job.bytes[way] = number(),
            (8, "read" | "write" | "trim", "total_ios") => job.calls[way] = number(),
            (8, "sync", "total_ios") => job.syncs = number(),
            _ => {}
        }
    }
    jobs
}
