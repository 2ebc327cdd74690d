//! From descriptions of workloads to clones with files.
//!
//! Owns: names of files, what is laid out before a run, which clones share a line of the report.
//! Does not own: running anything.
//! Invariants: files are made in an order that depends on the description alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use engine::Client;

use crate::job::{BlockSizes, Engine, Job};
use crate::locking::lock;
use crate::recorder::Recorder;
use crate::runner::{Clone, Doing};
use crate::sequence::{Sequence, Share, shares};
use crate::site::Site;
use crate::workload::{Readers, Workload};
use simulator::Random;

/// Most clones of all jobs together.
const CLONES_MAX: usize = 100_000;

/// Clones that start together.
pub(crate) struct Start<F> {
    /// Not before all that came before have ended.
    pub(crate) stonewall: bool,
    pub(crate) clones: Vec<Clone<F>>,
}

pub(crate) struct Plan<F> {
    pub(crate) starts: Vec<Start<F>>,
    /// The lines of the report.
    pub(crate) rows: Vec<Arc<Mutex<Recorder>>>,
    /// Bytes that will be moved, unless a job goes by time.
    pub(crate) bytes: Option<u64>,
    /// When the last job that goes by time is over, where there is one.
    pub(crate) time_ns: Option<u64>,
}

/// Readers are a job whose clones start one after the other.
fn readers_job(readers: &Readers) -> Job {
    let mut job = Job::named(&readers.name);
    job.block_bytes = [BlockSizes { min: readers.block_bytes, max: readers.block_bytes }; 2];
    (job.size, job.clones) = (readers.file_bytes, readers.count);
    job.directories = vec![readers.directory.clone()];
    job.group_reporting = true;
    job
}

/// The files of one clone: `NAME.CLONE.FILE`, or what `filename` says.
fn paths(job: &Job, clone: u64) -> Vec<String> {
    let turn = (clone as usize).checked_rem(job.directories.len());
    let directory = turn.map_or("", |at| job.directories[at].trim_end_matches('/'));
    let own = |file| format!("{}.{clone}.{file}", job.name);
    let names = if job.file_names.is_empty() { (0..job.files).map(own).collect() } else { job.file_names.clone() };
    let full = |name: String| match name.starts_with('/') || job.directories.is_empty() {
        true => name,
        false => format!("{directory}/{name}"),
    };
    names.into_iter().map(full).collect()
}

struct Planned<'a> {
    job: Arc<Job>,
    clone: u64,
    delay_ns: u64,
    stonewall: bool,
    paths: Vec<String>,
    shares: Vec<Share>,
    random: Random,
    workload: &'a Workload,
}

fn planned<'a>(workloads: &'a [Workload], seed: &Random) -> Result<Vec<Planned<'a>>, String> {
    let mut all: Vec<Planned<'a>> = Vec::new();
    for workload in workloads {
        let (job, over_ns) = match workload {
            Workload::Job(job) => (Arc::new(job.clone()), 0),
            Workload::Readers(readers) => (Arc::new(readers_job(readers)), readers.start_over_ns),
            // Not a job: it comes over a link (`serving`).
            Workload::NfsClient(_) => continue,
            // Nor this: what is called when is written down (`replay`).
            Workload::Replay(_) => continue,
        };
        if all.len() as u64 + job.clones > CLONES_MAX as u64 {
            return Err(format!("more than {CLONES_MAX} jobs, clones counted"));
        }
        for clone in 0..job.clones {
            let mut random = seed.fork(all.len() as u64);
            let steps = u128::from(over_ns) * u128::from(clone) / u128::from((job.clones - 1).max(1));
            all.push(Planned {
                paths: paths(&job, clone),
                shares: shares(&job, &mut random),
                stonewall: job.stonewall && clone == 0,
                job: Arc::clone(&job),
                clone,
                delay_ns: steps as u64,
                random,
                workload,
            });
        }
    }
    Ok(all)
}

/// A clone's name among all that wait.
fn task_name(job: &str, clone: u64) -> String {
    if clone == 0 { job.to_owned() } else { format!("{job}.{clone}") }
}

/// The paths of all files, and what each holds before the run.
pub(crate) fn layout(workloads: &[Workload], seed: &Random) -> Result<BTreeMap<String, u64>, String> {
    planned(workloads, seed).map(|all| layout_of(&all))
}

/// What each file holds before the run: all that a job will read or map.
fn layout_of(all: &[Planned<'_>]) -> BTreeMap<String, u64> {
    let mut layout: BTreeMap<String, u64> = BTreeMap::new();
    for planned in all {
        let laid_out = planned.job.pattern.reads || planned.job.engine == Engine::Mmap;
        for (path, share) in planned.paths.iter().zip(&planned.shares) {
            let bytes = layout.entry(path.clone()).or_default();
            *bytes = (*bytes).max(if laid_out { share.file_bytes } else { 0 });
        }
    }
    layout
}

pub(crate) fn plan<S: Site>(workloads: &[Workload], site: &S, seed: &Random) -> Result<Plan<S::File>, String> {
    let all = planned(workloads, seed)?;
    for readers in all.iter().filter(|planned| matches!(planned.workload, Workload::Readers(_))) {
        readers.paths.iter().for_each(|path| site.leave_holes(path));
    }
    site.lay_out(&layout_of(&all))?;
    let mut plan = Plan { starts: Vec::new(), rows: Vec::new(), bytes: Some(0), time_ns: None };
    // When the clones begin that are planned: what goes by bytes alone before them is not known.
    let mut start_ns = 0;
    let mut group: Option<Arc<Mutex<Recorder>>> = None;
    for planned in all {
        let Planned { job, clone, delay_ns, stonewall, paths, shares, random, workload } = planned;
        let mut files = Vec::new();
        for path in &paths {
            files.push(site.file(path, 0)?);
        }
        // A group ends at a stonewall; a built-in workload is one by itself.
        let begins = stonewall || !job.group_reporting || (matches!(workload, Workload::Readers(_)) && clone == 0);
        let row = group.take().filter(|_| !begins).unwrap_or_else(|| {
            let device = files.first().map(|file| site.device_name(file)).unwrap_or_default();
            let row = Recorder::new(&job.name, device);
            plan.rows.push(Arc::new(Mutex::new(row)));
            plan.rows[plan.rows.len() - 1].clone()
        });
        lock(&row).clones += 1;
        group = job.group_reporting.then(|| Arc::clone(&row));
        let sequence = Sequence::new(&job, &shares, random);
        let endless = job.time_based || job.runtime_ns > 0 || site.stop_ns() < u64::MAX;
        plan.bytes = plan.bytes.filter(|_| !endless).map(|bytes| bytes.saturating_add(sequence.total_bytes()));
        if stonewall {
            start_ns = plan.time_ns.unwrap_or(0);
        }
        if job.runtime_ns > 0 {
            let waits_ns = job.start_delay_ns.saturating_add(delay_ns).saturating_add(start_ns);
            plan.time_ns = plan.time_ns.max(Some(waits_ns.saturating_add(job.runtime_ns)));
        }
        if stonewall || plan.starts.is_empty() {
            plan.starts.push(Start { stonewall, clones: Vec::new() });
        }
        let clone = Clone {
            name: job.name.clone(),
            number: clone,
            task: Client::task(&task_name(&job.name, clone)),
            job,
            files,
            sequence,
            delay_ns,
            recorder: row,
            doing: Arc::new(Doing::default()),
        };
        if let Some(start) = plan.starts.last_mut() {
            start.clones.push(clone);
        }
    }
    Ok(plan)
}
