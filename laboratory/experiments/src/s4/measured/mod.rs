//! The measured part of s4: the real server and a client, on a slow disk and behind a slow network, beside nfs-ganesha.
//!
//! Owns: the order of the servers, the rows.
//! Does not own: disk, network and servers (`stage`), the copy (`client`), the server's reports (`reports`).
//! Invariants: every server writes to the same disk, one after the other. It is started for each copy, and stopped
//! before the next.

mod client;
mod reports;
mod stage;

use std::time::Instant;

use afflux_report::{Fields, Row};
use afflux_scratch::Scratch;

use super::plan::{Plan, Threshold};
use super::published;
use crate::contenders::ordered_runs;
use crate::experiment::{LabError, Watch};
use crate::machine::{measured_row, rounded};
use client::{CopyOf, Times, copy};
use reports::{Counts, Look, during, look};
use stage::{Server, Stage, Subject};

/// The engine's counters in a row.
const COUNTERS: [&str; 6] =
    ["nr_dirtied", "nr_written", "write_requests", "sync_requests", "flusher_turns", "throttle_pauses"];

/// One copy of one file.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    subject: Subject,
    pub(super) sample: u64,
    file_bytes: u64,
    times: Times,
    looks: Vec<Look>,
    /// The increase of each of [`COUNTERS`]; empty if the server does not report them.
    counted: Vec<(&'static str, u64)>,
}

impl Measured {
    pub(super) fn centisecs(&self) -> Option<u64> {
        self.subject.centisecs()
    }

    fn rate_mb_per_s(&self) -> f64 {
        self.file_bytes as f64 / 1e6 / self.times.elapsed.as_secs_f64()
    }

    /// The mean wait for a COMMIT, in milliseconds.
    fn commit_wait_ms(&self) -> f64 {
        let waits = self.times.commits.iter().map(|commit| commit.wait.as_secs_f64());
        waits.sum::<f64>() * 1e3 / self.times.commits.len().max(1) as f64
    }

    /// Seconds since the copy began, and the server's dirty bytes.
    pub(super) fn dirty(&self) -> Vec<(f64, f64)> {
        let since = |at: Instant| at.saturating_duration_since(self.times.begun).as_secs_f64();
        self.looks.iter().map(|look| (since(look.at), look.dirty_bytes as f64)).collect()
    }

    /// The dirty MB at the beginning of each COMMIT, by the last look before it.
    fn dirty_at_commits_mb(&self) -> Vec<f64> {
        let before = |at: Instant| self.looks.iter().rfind(|look| look.at <= at);
        let looks = self.times.commits.iter().filter_map(|commit| before(commit.begun));
        looks.map(|look| rounded(look.dirty_bytes as f64 / 1e6, 1)).collect()
    }

    fn row(&self, plan: &Plan) -> Row {
        let mut metrics = Fields::new()
            .with("rate_mb_per_s", rounded(self.rate_mb_per_s(), 3))
            .with("commit_wait_ms_mean", rounded(self.commit_wait_ms(), 3))
            .with("commits", self.times.commits.len())
            .with("elapsed_ns", self.times.elapsed.as_nanos() as u64);
        if let Some(last) = self.looks.last() {
            metrics = metrics
                .with("dirty_at_commit_mb", self.dirty_at_commits_mb())
                .with("background_threshold_bytes", last.background_threshold_bytes)
                .with("write_bandwidth_bytes_per_s", last.write_bandwidth_bytes_per_s);
        }
        metrics = self.counted.iter().fold(metrics, |metrics, (name, count)| metrics.with(*name, *count));
        let params = Fields::new()
            .with("centisecs", self.centisecs())
            .with("sample", self.sample)
            .with("write_bytes", write_bytes(plan))
            .with("size_bytes", self.file_bytes)
            .with("client_window_bytes", plan.window_bytes)
            .with("link_bits_per_s", plan.link.bits_per_second)
            .with("disk_bytes_per_s", plan.disk_bytes_per_s);
        let threshold = self.centisecs().map(Threshold::Centisecs);
        let published = threshold.map_or_else(Fields::new, |threshold| published::mean_rate(plan, threshold));
        measured_row("s4", self.subject.name(), params, metrics, published)
    }
}

/// The size of a WRITE: the same for all records, since the client gathers.
fn write_bytes(plan: &Plan) -> u32 {
    plan.write_bytes.unwrap_or(32 << 10)
}

/// Measures all servers, as often as the plan says. Every other time the order is reversed, so that a drift affects all
/// of them. `quick`: a window instead of the whole file.
pub(super) fn run(plan: &Plan, quick: bool, watch: &mut dyn Watch, from: f64) -> Result<Vec<Measured>, LabError> {
    let file_bytes = if quick { plan.window_bytes } else { plan.file_bytes };
    let scratch = Scratch::guarded(&std::env::temp_dir(), "s4").map_err(LabError::failed)?;
    let mut copies = Vec::new();
    let stage = Stage::new(plan, file_bytes, scratch.path())?;
    let knobs = plan.centisecs.iter().map(|&centisecs| Subject::Knob(centisecs));
    let subjects: Vec<Subject> = std::iter::once(Subject::Ganesha).chain(knobs).chain([Subject::Plain]).collect();
    let ordered_runs = ordered_runs(plan.samples, &[()], |(), _| subjects.clone());
    let mut missing = None;
    for (at, &(sample, (), subject)) in ordered_runs.iter().enumerate() {
        if missing == Some(subject) {
            continue;
        }
        let knob = subject.centisecs().map_or(String::new(), |centisecs| format!(" at {centisecs} cs"));
        let what = format!("measuring {}{knob}, {sample} of {}", subject.name(), plan.samples);
        watch.step(&what, from + (1.0 - from) * at as f64 / ordered_runs.len() as f64);
        match stage.start(subject) {
            Ok(server) => {
                let measured = one(plan, &stage, subject, &server, sample, file_bytes)?;
                server.stop()?;
                watch.row(&measured.row(plan));
                copies.push(measured);
            }
            Err(why) if subject == Subject::Ganesha => {
                watch.remark(&format!("{} was not measured: {why}.", subject.name()));
                missing = Some(subject);
            }
            Err(why) => return Err(LabError::failed(why)),
        }
    }
    Ok(copies)
}

/// One copy to a new server.
fn one(
    plan: &Plan,
    stage: &Stage,
    subject: Subject,
    server: &Server,
    sample: u64,
    file_bytes: u64,
) -> Result<Measured, LabError> {
    let what = CopyOf { file_bytes, window_bytes: plan.window_bytes, write_bytes: write_bytes(plan) };
    let control = server.control.as_deref();
    let counts = || control.and_then(look).map(|(_, counts)| counts);
    let before = counts().unwrap_or_default();
    let (copied, looks) = stage.as_client(|| during(control, || copy(&server.at, what)))?;
    let times = copied.map_err(|error| LabError::failed(format!("{}: {error}", subject.name())))?;
    let counted = counts().map_or_else(Vec::new, |after| moved(&before, &after));
    Ok(Measured { subject, sample, file_bytes, times, looks, counted })
}

fn moved(before: &Counts, after: &Counts) -> Vec<(&'static str, u64)> {
    let value = |counts: &Counts, name| counts.get(name).copied().unwrap_or(0);
    COUNTERS.iter().map(|name| (*name, value(after, *name).saturating_sub(value(before, *name)))).collect()
}

#[cfg(test)]
mod tests;
