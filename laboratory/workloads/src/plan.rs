//! From descriptions of workloads to clones with files.
//!
//! Owns: names of files, the layout before a run, the lines of the report and their clones, waits between jobs.
//! Does not own: running anything.
//! Invariants: the order in which files are made depends only on the description. All errors are reported at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afflux_engine::Client;

use crate::group::{EndsOthers, Everybody, Flow, FlowShare, Gate};
use crate::job::{BlockSizes, Engine, Job};
use crate::locking::lock;
use crate::recorder::{CallLog, Recorder};
use crate::runner::{Clone, Doing};
use crate::sequence::Sequence;
use crate::shares::{FileShare, shares};
use crate::site::Site;
use crate::workload::{Readers, Workload};
use afflux_simulator::Random;

/// Most clones of all jobs together.
const CLONES_MAX: usize = 100_000;

/// Clones that start together.
pub(crate) struct Start<F> {
    /// Starts only after all earlier clones have ended.
    pub(crate) stonewall: bool,
    pub(crate) clones: Vec<Clone<F>>,
}

pub(crate) struct Plan<F> {
    pub(crate) starts: Vec<Start<F>>,
    /// The lines of the report.
    pub(crate) rows: Vec<Arc<Mutex<Recorder>>>,
    /// Logs of single calls, each for a file of its own.
    pub(crate) logs: Vec<Arc<Mutex<CallLog>>>,
    /// Bytes that will be moved; `None` if a job is limited by time.
    pub(crate) bytes: Option<u64>,
    /// The end of the last job that is limited by time, if there is one.
    pub(crate) time_ns: Option<u64>,
    /// Most bytes of calls past the cache in flight at once.
    pub(crate) past_cache_bytes: u64,
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

/// The files of one clone: `NAME.CLONE.FILE`, or the names from `filename` or `filename_format`.
fn paths(job: &Job, clone: u64) -> Vec<String> {
    let index = (clone as usize).checked_rem(job.directories.len());
    let directory = index.map_or("", |at| job.directories[at].trim_end_matches('/'));
    let own = |file: u64| match &job.more.name_format {
        None => format!("{}.{clone}.{file}", job.name),
        Some(format) => format
            .replace("$jobname", &job.name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", &file.to_string())
            .replace("$clientuid", "localhost"),
    };
    let names = if job.file_names.is_empty() { (0..job.files).map(own).collect() } else { job.file_names.clone() };
    let full = |name: String| match name.starts_with('/') || job.directories.is_empty() {
        true => name,
        false => format!("{directory}/{name}"),
    };
    names.into_iter().map(full).collect()
}

/// Devices that accept and return bytes and store none.
fn keeps_nothing(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/zero" | "/dev/full")
}

struct Planned<'a> {
    job: Arc<Job>,
    clone: u64,
    delay_ns: u64,
    stonewall: bool,
    paths: Vec<String>,
    shares: Vec<FileShare>,
    random: Random,
    workload: &'a Workload,
}

/// The size of a device that a path names as a whole.
pub(crate) type DeviceBytes<'a> = dyn Fn(&str) -> Option<u64> + 'a;

/// Errors of a job that show only when its devices are known.
fn lacking(job: &Job, paths: &[String], there: &[Option<u64>], shares: &[FileShare]) -> Option<String> {
    let position = &job.position;
    let wrong = |what: String| Some(format!("{}:{}: job '{}': {what}", position.file, position.line, job.name));
    if !job.moves_bytes() || job.more.create_only {
        return None;
    }
    let sized = job.file_bytes.is_some() || job.size > 0;
    if let (false, false, Some(at)) = (sized, job.more.fill, there.iter().position(Option::is_none)) {
        let path = &paths[at];
        return wrong(format!(
            "needs 'size' or 'filesize': there is no '{path}' before; if it is a disk, say which: --device {path}=NAME"
        ));
    }
    if let (true, Some(at)) = (job.pattern.trims, there.iter().position(Option::is_none)) {
        let path = &paths[at];
        return wrong(format!("trims '{path}', which is a file; if it is a disk, say which: --device {path}=NAME"));
    }
    let smallest = job.block_bytes.iter().map(|sizes| sizes.min).min().unwrap_or(1);
    if let Some(at) = shares.iter().position(|share| share.job_bytes < smallest && share.start >= share.file_bytes) {
        let FileShare { file_bytes, start, .. } = shares[at];
        return wrong(format!("begins at byte {start} of '{}', which has {file_bytes}", paths[at]));
    }
    None
}

fn planned<'a>(
    workloads: &'a [Workload],
    seed: &Random,
    device_bytes: &DeviceBytes<'_>,
) -> Result<Vec<Planned<'a>>, String> {
    let mut all: Vec<Planned<'a>> = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for workload in workloads {
        let (mut job, over_ns) = match workload {
            Workload::Job(job) => (job.clone(), 0),
            Workload::Readers(readers) => (readers_job(readers), readers.start_over_ns),
            // Not a job: it comes over a link (`serving`).
            Workload::NfsClient(_) => continue,
            // Not a job either: its calls are recorded (`replay`).
            Workload::Replay(_) => continue,
        };
        if all.len() as u64 + job.clones > CLONES_MAX as u64 {
            return Err(format!("more than {CLONES_MAX} jobs, clones counted"));
        }
        if !job.file_names.is_empty() && job.file_names.iter().all(|path| keeps_nothing(path)) {
            job.engine = Engine::Null;
        }
        let job = Arc::new(job);
        let mut lacks = None;
        for clone in 0..job.clones {
            let mut random = seed.fork(all.len() as u64);
            let steps = u128::from(over_ns) * u128::from(clone) / u128::from((job.clones - 1).max(1));
            let paths = paths(&job, clone);
            let there: Vec<Option<u64>> = match job.moves_bytes() {
                true => paths.iter().map(|path| device_bytes(path)).collect(),
                false => vec![None; paths.len()],
            };
            let shares = shares(&job, clone, &there, &mut random);
            lacks = lacks.or_else(|| lacking(&job, &paths, &there, &shares));
            all.push(Planned {
                paths,
                shares,
                stonewall: job.stonewall && clone == 0,
                job: Arc::clone(&job),
                clone,
                delay_ns: steps as u64,
                random,
                workload,
            });
        }
        wrong.extend(lacks);
    }
    if wrong.is_empty() { Ok(all) } else { Err(wrong.join("\n")) }
}

/// A clone's name among all tasks that wait.
fn task_name(job: &str, clone: u64) -> String {
    if clone == 0 { job.to_owned() } else { format!("{job}.{clone}") }
}

/// The paths of all files, and the size of each before the run.
pub(crate) fn layout(
    workloads: &[Workload],
    seed: &Random,
    device_bytes: &DeviceBytes<'_>,
) -> Result<BTreeMap<String, u64>, String> {
    planned(workloads, seed, device_bytes).map(|all| layout_of(&all, device_bytes))
}

/// The size of each file before the run: whole if a job will read, map or overwrite it, or if it is a device; otherwise
/// empty.
fn layout_of(all: &[Planned<'_>], device_bytes: &DeviceBytes<'_>) -> BTreeMap<String, u64> {
    let mut layout: BTreeMap<String, u64> = BTreeMap::new();
    for planned in all.iter().filter(|planned| planned.job.moves_bytes()) {
        let (job, more) = (&planned.job, &planned.job.more);
        let reads = job.pattern.reads || more.verify.is_some_and(|verify| verify.only);
        let laid_out = reads || more.overwrite || job.engine == Engine::Mmap;
        for (path, share) in planned.paths.iter().zip(&planned.shares) {
            let whole = laid_out || device_bytes(path).is_some();
            let bytes = layout.entry(path.clone()).or_default();
            *bytes = (*bytes).max(if whole { share.file_bytes } else { 0 });
        }
    }
    layout
}

/// The use of each file: number of clones, use through the cache, use past the cache.
fn uses(all: &[Planned<'_>]) -> BTreeMap<String, (u64, bool, bool)> {
    let mut uses: BTreeMap<String, (u64, bool, bool)> = BTreeMap::new();
    for planned in all {
        let direct = planned.job.is_direct();
        for path in &planned.paths {
            let used = uses.entry(path.clone()).or_default();
            *used = (used.0 + 1, used.1 || !direct, used.2 || direct);
        }
    }
    uses
}

/// Relations between jobs, as far as they are known.
#[derive(Default)]
struct Bonds {
    gates: BTreeMap<String, Arc<Gate>>,
    flows: BTreeMap<u64, Arc<Flow>>,
    everybody: Everybody,
    group: u64,
    in_group: u64,
}

impl Bonds {
    /// The clone's group, whose clones may be ended together.
    fn group_of(&mut self, begins: bool) -> u64 {
        if begins && self.in_group > 0 {
            (self.group, self.in_group) = (self.group + 1, 0);
        }
        self.in_group += 1;
        self.group
    }

    fn gate(&mut self, name: &str) -> Arc<Gate> {
        Arc::clone(self.gates.entry(name.to_owned()).or_default())
    }

    fn flow(&mut self, job: &Job) -> Option<FlowShare> {
        let flow = Arc::clone(self.flows.entry(job.more.flow_id).or_default());
        (job.more.flow > 0).then_some(FlowShare { flow, weight: job.more.flow, calls: 0 })
    }
}

pub(crate) fn plan<S: Site>(workloads: &[Workload], site: &S, seed: &Random) -> Result<Plan<S::File>, String> {
    let device_bytes = |path: &str| site.device_bytes(path);
    let all = planned(workloads, seed, &device_bytes)?;
    for readers in all.iter().filter(|planned| matches!(planned.workload, Workload::Readers(_))) {
        readers.paths.iter().for_each(|path| site.leave_holes(path));
    }
    let uses = uses(&all);
    uses.iter().filter(|(_, used)| used.1 && used.2).for_each(|(path, _)| site.leave_unchecked(path));
    // Trimmed blocks read as zeros that no job wrote.
    let trimmed = all.iter().filter(|planned| planned.job.pattern.trims);
    trimmed.flat_map(|planned| &planned.paths).for_each(|path| site.leave_unchecked(path));
    site.lay_out(&layout_of(&all, &device_bytes))?;
    let mut plan = Plan {
        starts: Vec::new(),
        rows: Vec::new(),
        logs: Vec::new(),
        bytes: Some(0),
        time_ns: None,
        past_cache_bytes: 0,
    };
    // The start of the clones that are being planned. Earlier jobs limited only by bytes have an unknown duration,
    // which is left out.
    let mut start_ns = 0;
    let mut group: Option<Arc<Mutex<Recorder>>> = None;
    let mut bonds = Bonds::default();
    for (at, planned) in all.into_iter().enumerate() {
        let Planned { job, clone, delay_ns, stonewall, paths, shares, random, workload } = planned;
        let mut files = Vec::new();
        for path in paths.iter().filter(|_| job.moves_bytes()) {
            files.push(site.file(path, 0)?);
        }
        let new_group = job.more.new_group && clone == 0;
        // A group ends at a stonewall; a built-in workload is a group of its own.
        let begins =
            stonewall || new_group || !job.group_reporting || (matches!(workload, Workload::Readers(_)) && clone == 0);
        let row = group.take().filter(|_| !begins).unwrap_or_else(|| {
            let device = files.first().map(|file| site.device_name(file)).unwrap_or_default();
            let row = Recorder::new(&job.name, device, &job.more.percentiles);
            plan.rows.push(Arc::new(Mutex::new(row)));
            plan.rows[plan.rows.len() - 1].clone()
        });
        lock(&row).clones += 1;
        group = job.group_reporting.then(|| Arc::clone(&row));
        let sequence = Sequence::new(&job, &shares, random.clone());
        let endless = job.time_based || job.runtime_ns > 0 || site.stop_ns() < u64::MAX;
        plan.bytes = plan.bytes.filter(|_| !endless).map(|bytes| bytes.saturating_add(sequence.total_bytes()));
        if stonewall {
            start_ns = plan.time_ns.unwrap_or(0);
        }
        if job.runtime_ns > 0 {
            let waits_ns = job.start_delay_max_ns.saturating_add(delay_ns).saturating_add(start_ns);
            let lasts_ns = job.runtime_ns.saturating_add(job.more.ramp_ns);
            plan.time_ns = plan.time_ns.max(Some(waits_ns.saturating_add(lasts_ns)));
        }
        if stonewall || plan.starts.is_empty() {
            plan.starts.push(Start { stonewall, clones: Vec::new() });
        }
        if job.is_direct() {
            let largest = job.block_bytes.iter().map(|sizes| sizes.max).max().unwrap_or(0).next_multiple_of(4096);
            let most = (largest + 2 * 4096).saturating_mul(job.in_flight_max() + 1);
            plan.past_cache_bytes = plan.past_cache_bytes.saturating_add(most);
        }
        let log = job.more.logs.any().then(|| Arc::new(Mutex::new(CallLog::new(at as u64 + 1, &job.more.logs))));
        plan.logs.extend(log.clone());
        let number = bonds.group_of(stonewall || new_group);
        let number =
            bonds.everybody.add(number, EndsOthers { always: job.more.exit_all, on_error: job.more.exit_all_on_error });
        let gate = bonds.gate(&job.name);
        gate.add();
        let clone = Clone {
            name: job.name.clone(),
            number: clone,
            task: Client::task(&task_name(&job.name, clone)),
            removable: paths.iter().map(|path| uses.get(path).is_some_and(|used| used.0 == 1)).collect(),
            files,
            sequence,
            delay_ns,
            recorder: row,
            log,
            doing: Arc::new(Doing::default()),
            waits_for: job.more.wait_for.as_deref().filter(|name| *name != job.name).map(|name| bonds.gate(name)),
            gate,
            flow: bonds.flow(&job),
            member: number,
            everybody: Arc::default(),
            random: random.fork(1),
            job,
        };
        if let Some(start) = plan.starts.last_mut() {
            start.clones.push(clone);
        }
    }
    let everybody = Arc::new(bonds.everybody);
    for clone in plan.starts.iter_mut().flat_map(|start| &mut start.clones) {
        clone.everybody = Arc::clone(&everybody);
    }
    Ok(plan)
}
