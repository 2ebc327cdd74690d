//! The plan: the jobs in groups that run together, the rates, the memory.
//!
//! Owns: the built-in jobs, reading the options.
//! Does not own: the runs.
//! Invariants: both sides have the same plan.

use std::io::Read;
use std::path::PathBuf;

use afflux_simulator::catalogue::Model;
use afflux_workloads::Job;
use afflux_workloads::fio::{self, Alone};

use super::options::{JOB, MEMORY, RATES};
use crate::contenders::engine_options::directory;
use crate::experiment::{LabError, Request};
use crate::machine;

/// A stream that syncs each MiB, random writes, four jobs that read and write, and a stream for 45 s with a sync at its
/// end. In each, the throttle is slower than everything else, even on a busy machine.
const JOBS: &str = include_str!("jobs.fio");
/// The same jobs for seconds only.
const QUICK: &str = include_str!("quick.fio");
/// Largest job file.
const JOB_BYTES_MAX: u64 = 1 << 20;

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
