//! The options, the labels, and the plan of the jobs: in groups that run together, the rates, the memory.
//!
//! Owns: names, ranges, defaults and help of the options; the labels of cells; the built-in jobs.
//! Does not own: the runs.
//! Invariants: both sides have the same plan. An option of a single case says so. A hold-out is a
//! figure by which nothing in the law or the machine was chosen.

use std::io::Read;
use std::path::PathBuf;

use afflux_simulator::catalogue::Model;
use afflux_workloads::Job;
use afflux_workloads::fio::{self, Alone};
use clap::ValueEnum;

use crate::contenders::engine_options::PlaceOption;
use crate::experiment::{LabError, Request};
use crate::labels::{Cells, Label};
use crate::machine;
use crate::options::{List, list, named, number, rate, size};
use crate::pick::Pick;

/// Least limit in bytes: a writer dirties little in comparison between two decisions.
const LIMIT_BYTES_MIN: u64 = 16 << 20;
/// Largest limit or memory.
const BYTES_MAX: u64 = 1_000_000_000_000;

/// The case to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Case {
    Jobs,
    Kernel,
    Recorded,
}

/// The setup of the machine in the case `kernel`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum FormKind {
    Tuned,
    Bytes,
    Default,
    Fuse,
}

/// The options of all cases.
#[derive(clap::Args)]
pub(super) struct CaseOptions {
    /// jobs: the engine's runs; kernel: a writer under linux-6.1; recorded: that law against a recorded 6.1
    #[arg(long, value_name = "NAME", default_value = "jobs", value_parser = named::<Case>)]
    pub(super) case: Case,
    /// bytes a second of the disk, read and write each
    #[arg(long, value_name = "LIST", default_value = "25MB,5MiB,100MB", value_parser = list(rate_with_text))]
    pub(super) rates: List<Rate>,
    /// an fio job file, in place of the built-in jobs
    #[arg(long, value_name = "FILE")]
    job: Option<String>,
    /// page memory; half of it may be dirty
    #[arg(long = "memory", value_name = "SIZE", default_value = "256MiB", value_parser = size(16 << 20..=8 << 30))]
    memory_bytes: u64,
    /// kernel: how long the writer writes
    #[arg(long, value_name = "N", default_value = "45", value_parser = number(11..=600))]
    pub(super) seconds: u64,
    /// kernel: max_bytes of the tuned device
    #[arg(long, value_name = "SIZE", default_value = "50MB", value_parser = size(0..=BYTES_MAX))]
    pub(super) max_bytes: u64,
    /// kernel: memory that may be dirty, of which a fifth is the limit (22GiB); also that of a control group
    #[arg(long = "dirtyable", value_name = "SIZE", value_parser = size(0..=BYTES_MAX))]
    pub(super) dirtyable_bytes: Option<u64>,
    /// kernel: vm.dirty_bytes of the form in bytes; vm.dirty_background_bytes is half of it
    #[arg(long, value_name = "SIZE", default_value = "400MB", value_parser = size(LIMIT_BYTES_MIN..=BYTES_MAX))]
    pub(super) limit_bytes: u64,
    /// kernel: tuned (max_bytes, strict), bytes (limits in bytes), default, fuse (a hundredth of the limit, strict)
    #[arg(long, value_name = "LIST", default_value = "tuned,bytes,default", value_parser = list(named::<FormKind>))]
    pub(super) forms: List<FormKind>,
    /// kernel: ticks a second
    #[arg(long, value_name = "N", default_value = "1000", value_parser = number(1..=1_000_000))]
    pub(super) hz: u64,
    #[command(flatten)]
    place: PlaceOption,
}

/// A stream that syncs each MiB, random writes, four jobs that read and write, and a stream for 45 s with a sync at its
/// end. In each, the throttle is slower than everything else, even on a busy machine.
const JOBS: &str = include_str!("jobs.fio");
/// The same jobs for seconds only.
const QUICK: &str = include_str!("quick.fio");
/// Largest job file.
const JOB_BYTES_MAX: u64 = 1 << 20;

/// The origins of the figures. The measured side has none: it is what was measured.
pub(super) const LABELS: &[Cells] = &[
    Cells::of(
        Label::PutIn,
        "the disk's rate and latency, the jobs, the limits",
        &[
            "rate_bytes_per_s",
            "limit_pages",
            "background_pages",
            "disk_pages_per_s",
            "call_ns",
            "worker_ns_per_page",
            "hz",
        ],
    ),
    Cells::of(Label::PutIn, "accepted pages at 20 MB/s, which are the load", &["accepted_pages"])
        .only(&[("variant", "recorded-at-rate")]),
    Cells::of(
        Label::HoldOut,
        "the loads with ratios and with bursts, and the pauses and syncs of all loads",
        &["pauses", "sync_s", "small_syncs_s", "bursts_s"],
    )
    .only(RECORDED),
    Cells::of(
        Label::HoldOut,
        "the loads with ratios and with bursts, and the pauses and syncs of all loads",
        &["dirty_pages", "accepted_pages", "written_pages"],
    )
    .only(&[("variant", "recorded-default|recorded-burst")]),
];

const RECORDED: Pick =
    &[("variant", "recorded-bytes|recorded-default|recorded-at-rate|recorded-small-sync|recorded-burst")];

/// Bytes a second, and the text of the option.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    pub(super) text: String,
    pub(super) bytes_per_s: u64,
}

/// Jobs that run together, named after the first.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) jobs: Vec<Job>,
}

/// The plan of a run.
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    pub(super) rates: Vec<Rate>,
    pub(super) memory_bytes: u64,
    pub(super) directory: PathBuf,
}

pub(super) fn plan(request: &Request) -> Result<Plan, LabError> {
    let options: CaseOptions = request.read()?;
    let (name, text) = match options.job {
        None if request.quick => ("quick.fio".to_owned(), QUICK.to_owned()),
        None => ("jobs.fio".to_owned(), JOBS.to_owned()),
        Some(path) => {
            let text = job_file(&path).map_err(|error| LabError::Failed(format!("{path} cannot be read: {error}")))?;
            (path, text)
        }
    };
    // A job file includes no other file, so that one text describes the whole run.
    let parsed = fio::parse(&name, &text, &mut Alone("a job file of this experiment includes no other"))
        .map_err(|error| LabError::Failed(error.to_string()))?;
    let mut groups: Vec<Group> = Vec::new();
    for mut job in parsed.jobs {
        let begins = std::mem::take(&mut job.stonewall);
        match groups.last_mut().filter(|_| !begins) {
            Some(group) => group.jobs.push(job),
            None => groups.push(Group { name: job.name.clone(), jobs: vec![job] }),
        }
    }
    let CaseOptions { rates, memory_bytes, place, .. } = options;
    Ok(Plan { groups, rates, memory_bytes, directory: place.directory()? })
}

/// The text of a job file, up to one byte more than such a file may have.
fn job_file(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(JOB_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > JOB_BYTES_MAX {
        return Err(std::io::Error::other(format!("it has more than {JOB_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn rate_with_text(text: &str) -> Result<Rate, String> {
    let bytes_per_s = rate(100_000..=10_000_000_000)(text)?;
    Ok(Rate { text: text.to_owned(), bytes_per_s })
}

/// The catalogue's throttled disk at this rate.
pub(super) fn model(rate: &Rate) -> Result<Model, LabError> {
    let bytes = format!("{} B", rate.bytes_per_s);
    machine::model("throttled", &[("read_bytes_per_second", bytes.clone()), ("write_bytes_per_second", bytes)])
}

#[cfg(test)]
mod tests;
