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

use crate::contenders::engine_options::{DIRECTORY, directory};
use crate::experiment::{LabError, Request};
use crate::labels::{Cells, Label};
use crate::machine;
use crate::options::{named, options};
use crate::pick::Pick;

/// Least limit in bytes: a writer dirties little in comparison between two decisions.
const LIMIT_BYTES_MIN: u64 = 16 << 20;
/// Largest limit or memory.
const BYTES_MAX: u64 = 1_000_000_000_000;

named! {
    /// The case to run.
    pub(super) enum Case {
        Jobs = "jobs",
        Kernel = "kernel",
        Recorded = "recorded",
    }
}

named! {
    /// The setup of the machine in the case `kernel`.
    pub(super) enum FormKind {
        Tuned = "tuned",
        Bytes = "bytes",
        Default = "default",
        Fuse = "fuse",
    }
}

options! {
    pub(super) OPTIONS [DIRECTORY] {
        /// jobs: the engine's runs; kernel: a writer under linux-6.1; recorded: that law against a recorded 6.1
        pub(super) CASE: Case = choice("case", "NAME", "jobs");
        /// bytes a second of the disk, read and write each
        RATES: u64 = rate("rates", "LIST", "25MB,5MiB,100MB", 100_000..=10_000_000_000);
        /// an fio job file, in place of the built-in jobs
        JOB: String = text("job", "FILE", "");
        /// page memory; half of it may be dirty
        MEMORY: u64 = size("memory", "SIZE", "256MiB", 16 << 20..=8 << 30);
        /// kernel: how long the writer writes
        pub(super) WRITER_SECONDS: u64 = number("seconds", "N", "45", 11..=600);
        /// kernel: max_bytes of the tuned device
        pub(super) MAX_BYTES: u64 = size("max-bytes", "SIZE", "50MB", 0..=BYTES_MAX);
        /// kernel: memory that may be dirty, of which a fifth is the limit (22GiB); also that of a control group
        pub(super) DIRTYABLE: u64 = size("dirtyable", "SIZE", "", 0..=BYTES_MAX);
        /// kernel: vm.dirty_bytes of the form in bytes; vm.dirty_background_bytes is half of it
        pub(super) LIMIT_BYTES: u64 = size("limit-bytes", "SIZE", "400MB", LIMIT_BYTES_MIN..=BYTES_MAX);
        /// kernel: tuned (max_bytes, strict), bytes (limits in bytes), default, fuse (a hundredth of the limit, strict)
        pub(super) FORMS: FormKind = choice("forms", "LIST", "tuned,bytes,default");
        /// kernel: ticks a second
        pub(super) TICKS: u64 = number("hz", "N", "1000", 1..=1_000_000);
    }
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
    let (name, text) = match request.text(&JOB.info) {
        "" if request.quick => ("quick.fio".to_owned(), QUICK.to_owned()),
        "" => ("jobs.fio".to_owned(), JOBS.to_owned()),
        path => (
            path.to_owned(),
            job_file(path).map_err(|error| LabError::Failed(format!("{path} cannot be read: {error}")))?,
        ),
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
    Ok(Plan { groups, rates: rates(request)?, memory_bytes: MEMORY.value(request)?, directory: directory(request)? })
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

pub(super) fn rates(request: &Request) -> Result<Vec<Rate>, LabError> {
    request.list(&RATES.info, |text| Ok(Rate { text: text.to_owned(), bytes_per_s: RATES.read(text)? }))
}

/// The catalogue's throttled disk at this rate.
pub(super) fn model(rate: &Rate) -> Result<Model, LabError> {
    let bytes = format!("{} B", rate.bytes_per_s);
    machine::model("throttled", &[("read_bytes_per_second", bytes.clone()), ("write_bytes_per_second", bytes)])
}

#[cfg(test)]
mod tests;
