//! A machine in the simulator: an engine over simulated disks, with writers.
//!
//! Owns: the hardware with its counts, and the engine on it; streams of writes; counts of submissions by task.
//! Does not own: the parameters and results of an experiment, the policies, the disks' models; an old kernel on the
//! same hardware (`kernel_machine`).
//! Invariants: every figure is counted in the run: by the software, the disks, the virtual CPUs, or between software
//! and disk. The same options give the same run.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_engine::counters::COUNTERS;
use afflux_engine::{Device, DeviceId, Engine, File, Limits, Nanos, Operation, Platform, Request};
use afflux_report::{Fields, FigureSource, Row};
use afflux_simulator::catalogue::{DeviceChoice, Model};
use afflux_simulator::{
    Cost, CostOf, CostTable, CpuOptions, Disk, DiskFigures, DiskFileId, Memory, Setup, SimMachine, SimPlatform, World,
    WorldOptions, catalogue,
};
use serde_json::{Map, Value, json};

use crate::delays::delays;
use crate::experiment::LabError;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bytes of the megabyte of disks and networks.
pub(crate) const MB: f64 = 1e6;

/// The parameters of a machine.
pub(crate) struct MachineOptions {
    /// The seed of all random choices.
    pub(crate) seed: u64,
    /// Virtual CPUs.
    pub(crate) cpus: usize,
    /// Costs of work on the virtual CPUs.
    pub(crate) costs: CostTable,
    /// Bytes of page frames.
    pub(crate) memory_bytes: u64,
    /// The policy in force, with its initial knobs.
    pub(crate) setup: Setup,
    /// Further knobs, each as `KNOB=VALUE`.
    pub(crate) knobs: Vec<String>,
    /// The disks, and the queue in front of each.
    pub(crate) disks: Vec<Model>,
    pub(crate) queue: Queue,
    /// Otherwise completed writes count as durable, and no disk's cache is flushed. So it was in 2009, when barriers
    /// did not pass LVM and were off in ext3 unless asked for.
    pub(crate) flushes: bool,
}

/// Virtual CPUs and disks, without software.
pub(crate) struct Hardware {
    pub(crate) world: World,
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) disks: Vec<Arc<WatchedDisk>>,
}

/// A running machine.
pub(crate) struct ExperimentMachine {
    pub(crate) hardware: Hardware,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) devices: Vec<DeviceId>,
}

impl Deref for ExperimentMachine {
    type Target = Hardware;

    fn deref(&self) -> &Hardware {
        &self.hardware
    }
}

/// The progress of a writer.
#[derive(Default)]
pub(crate) struct Progress {
    ended: AtomicBool,
    ended_ns: AtomicU64,
}

impl Progress {
    /// The writer ends now.
    pub(crate) fn end(&self, now_ns: u64) {
        self.ended_ns.store(now_ns, Ordering::Relaxed);
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The instant of the end; 0 before.
    pub(crate) fn ended_ns(&self) -> u64 {
        self.ended_ns.load(Ordering::Relaxed)
    }
}

/// The writes submitted to a disk, and the tasks that submitted them.
#[derive(Clone, Default)]
pub(crate) struct Submitted {
    /// Write requests.
    pub(crate) requests: u64,
    /// Bytes of these requests.
    pub(crate) bytes: u64,
    /// The number of writes to another file than the write before.
    pub(crate) file_switches: u64,
    /// Bytes by the name of the task that submitted them.
    pub(crate) by_task: BTreeMap<&'static str, u64>,
    /// For each second of the run, the numbers of the tasks that submitted anything in it.
    pub(crate) tasks_by_second: BTreeMap<u64, BTreeSet<u64>>,
    /// Instants of the first and the last submission.
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    last_file: Option<DiskFileId>,
}

/// A disk that records its requests at submission.
pub(crate) struct WatchedDisk {
    pub(crate) disk: Arc<Disk>,
    limits: Limits,
    platform: Arc<SimPlatform>,
    submitted: Mutex<Submitted>,
}

/// The contents of a mutex, also if a thread panicked with them.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WatchedDisk {
    /// The submissions so far.
    pub(crate) fn submitted(&self) -> Submitted {
        lock(&self.submitted).clone()
    }
}

impl Device for WatchedDisk {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        if let Operation::Write { len, .. } = request.operation() {
            let (now_ns, file) = (self.platform.now().0, self.disk.file_of(request.backing()));
            let task = self.platform.running_task();
            let mut submitted = lock(&self.submitted);
            submitted.requests += 1;
            submitted.bytes += u64::from(len);
            let switched = submitted.last_file.is_some_and(|last| Some(last) != file);
            submitted.file_switches += u64::from(switched);
            submitted.last_file = file;
            submitted.first_ns.get_or_insert(now_ns);
            submitted.last_ns = now_ns;
            if let Some((name, number)) = task {
                *submitted.by_task.entry(name).or_default() += u64::from(len);
                submitted.tasks_by_second.entry(now_ns / Nanos::SECOND).or_default().insert(number);
            }
        }
        self.disk.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

/// A file with all its bytes on the medium.
pub(crate) fn laid_out(engine: &Engine<SimPlatform>, device: DeviceId, disk: &Disk, bytes: u64) -> File {
    let id = disk.create_file();
    if bytes > 0 {
        disk.make_sparse(id, bytes);
        disk.lay_out(id, bytes);
    }
    engine.open(device, disk.backing(id), bytes)
}

/// A built-in disk with changes.
pub(crate) fn model(name: &str, changes: &[(&str, String)]) -> Result<Model, LabError> {
    let choice = DeviceChoice { name: name.to_owned(), overrides: Vec::new() };
    let mut model = choice.model(None).map_err(LabError::failed)?;
    for (key, value) in changes {
        model.set(key, value).map_err(LabError::failed)?;
    }
    Ok(model)
}

/// A built-in rotating disk with a limited queue of write requests. As in Linux, the queue has as many slots for reads
/// beside those for writes.
pub(crate) fn queued_model(name: &str, queue: Queue) -> Result<Model, LabError> {
    let allocation = if queue.at_submission { "at-submission" } else { "delayed" };
    let changes = [
        ("nr_requests", (2 * queue.nr_requests).to_string()),
        ("request_bytes_max", format!("{} KiB", queue.request_kib)),
        ("allocation", allocation.to_owned()),
        ("scheduler", if queue.is_sorted { "deadline" } else { "none" }.to_owned()),
    ];
    model(name, &changes)
}

/// The queue between engine and disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Most write requests in the queue.
    pub(crate) nr_requests: u64,
    /// Most KiB in one request; requests are not merged into larger ones.
    pub(crate) request_kib: u64,
    /// The number of requests in a row that a task gets after it had to wait for one; the kernel's is 32.
    pub(crate) batch: u64,
    /// Whether space is allocated as requests are submitted, instead of in chunks of a file.
    pub(crate) at_submission: bool,
    /// Whether the deadline elevator sorts and merges requests; otherwise they go first come, first served.
    pub(crate) is_sorted: bool,
}

/// Costs set by hand: the kind of work, its nanoseconds (per page, byte, request, step), and the source of the figure.
pub(crate) fn costs(machine: &str, list: &[(CostOf, f64, &str)]) -> CostTable {
    let cost = |(of, ns, source): &(CostOf, f64, &str)| Cost {
        of: *of,
        ps: (ns * 1000.0).round() as u64,
        source: (*source).to_owned(),
    };
    CostTable::new(machine, list.iter().map(cost).collect())
}

impl ExperimentMachine {
    /// Builds the machine; nothing runs yet.
    pub(crate) fn new(options: MachineOptions) -> Result<Self, LabError> {
        let Queue { nr_requests, batch, .. } = options.queue;
        let queue = [format!("writeback_depth={nr_requests}"), format!("writeback_request_batch={batch}")];
        let setup = options.setup.with_knobs(&options.knobs);
        let setup = setup.and_then(|setup| setup.with_knobs(&queue)).map_err(LabError::failed)?;
        let hardware = Hardware::new(options.seed, options.cpus, options.costs, &options.disks, options.flushes);
        let memory = Memory::Stamped(options.memory_bytes);
        let parts = SimMachine::new(&hardware.world, memory, setup);
        let mut parts = parts.map_err(LabError::failed)?;
        for watched in &hardware.disks {
            parts.add_behind("disk", Arc::clone(&watched.disk), Arc::clone(watched) as Arc<dyn Device>);
        }
        let SimMachine { engine, devices, .. } = parts;
        Ok(Self { hardware, engine, devices })
    }

    /// An empty file on a disk.
    pub(crate) fn file(&self, disk: usize) -> (File, DiskFileId) {
        let inner = &self.disks[disk].disk;
        let id = inner.create_file();
        (self.engine.open(self.devices[disk], inner.backing(id), 0), id)
    }

    /// All counts so far.
    pub(crate) fn tally(&self) -> Tally {
        let counts = COUNTERS.iter().zip(self.platform.counters().sum()).map(|(info, count)| (info.name, count));
        self.hardware.tally(counts.collect(), delays(&self.engine, &self.devices))
    }

    /// A task that writes `bytes` to the file in calls of `call_bytes`, in sequence and at full speed.
    pub(crate) fn stream(&self, file: &File, bytes: u64, call_bytes: u64) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let (engine, platform, file) = (Arc::clone(&self.engine), Arc::clone(&self.platform), file.clone());
        let own = Arc::clone(&progress);
        self.world.spawn("writer", async move {
            let piece = vec![0; call_bytes as usize];
            let mut at = 0;
            while at < bytes {
                let len = call_bytes.min(bytes - at);
                if engine.write(&file, at, &piece[..len as usize]).await.is_err() {
                    break;
                }
                at += len;
                platform.preemption_point().await;
            }
            own.end(platform.now().0);
        });
        progress
    }
}

impl Hardware {
    /// These CPUs and disks. Without `flushes` completed writes count as durable, and no disk's cache is flushed.
    pub(crate) fn new(seed: u64, cpus: usize, costs: CostTable, disks: &[Model], flushes: bool) -> Self {
        let world = World::new(WorldOptions::machine(seed, CpuOptions { costs, ..CpuOptions::count(cpus) }));
        let platform = Arc::clone(world.platform());
        let watched = |(number, model): (usize, &Model)| {
            let disk = catalogue::make(&world, number as u64, model);
            let limits = Limits { volatile_cache: disk.limits().volatile_cache && flushes, ..*disk.limits() };
            Arc::new(WatchedDisk { disk, limits, platform: Arc::clone(&platform), submitted: Mutex::default() })
        };
        let disks = disks.iter().enumerate().map(watched).collect();
        Self { world, platform, disks }
    }

    /// Runs until `future` is done.
    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output, LabError> {
        self.world.run(future).map_err(LabError::failed)
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    /// Lets `ns` pass.
    pub(crate) fn sleep(&self, ns: u64) -> Result<(), LabError> {
        self.run(self.platform.sleep_until(self.platform.now().after(ns)))
    }

    /// Looks every `look_ns`, for at most so many looks, until one says that it is done.
    pub(crate) fn look_until(
        &self,
        look_ns: u64,
        looks_max: u64,
        mut is_done: impl FnMut() -> bool,
    ) -> Result<(), LabError> {
        for _ in 0..looks_max {
            self.sleep(look_ns)?;
            if is_done() {
                return Ok(());
            }
        }
        let seconds = look_ns * looks_max / Nanos::SECOND;
        Err(LabError::Failed(format!("a run is not over after {seconds} s of virtual time")))
    }

    /// Lets time pass until all writers have ended, with a look every `look_ns`.
    pub(crate) fn until_ended(&self, writers: &[Arc<Progress>], look_ns: u64) -> Result<(), LabError> {
        while !writers.iter().all(|writer| writer.has_ended()) {
            self.sleep(look_ns)?;
        }
        Ok(())
    }

    /// The progress of all disks together.
    pub(crate) fn sample(&self) -> Sample {
        let figures = self.disks.iter().map(|disk| disk.disk.figures());
        let (bytes, commands) = figures.fold((0, 0), |sum, it| (sum.0 + it.bytes.1, sum.1 + it.commands));
        Sample { seconds: self.now_ns() as f64 / 1e9, bytes, commands }
    }

    /// All counts so far, with those of the software.
    pub(crate) fn tally(&self, counts: BTreeMap<&'static str, u64>, delays: Value) -> Tally {
        Tally {
            at_ns: self.now_ns(),
            counts,
            disks: self.disks.iter().map(|disk| disk.disk.figures()).collect(),
            submitted: self.disks.iter().map(|disk| disk.submitted()).collect(),
            cpu_ns: self.world.cpu_usage().busy_ns(),
            delays,
        }
    }
}

/// A disk's progress at an instant, for plots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) commands: u64,
}

/// All counts at an instant.
#[derive(Clone)]
pub(crate) struct Tally {
    pub(crate) at_ns: u64,
    counts: BTreeMap<&'static str, u64>,
    disks: Vec<DiskFigures>,
    submitted: Vec<Submitted>,
    cpu_ns: u64,
    delays: Value,
}

/// The activity between two instants.
pub(crate) struct Span<'a> {
    from: &'a Tally,
    to: &'a Tally,
}

impl<'a> Span<'a> {
    pub(crate) fn between(from: &'a Tally, to: &'a Tally) -> Self {
        Self { from, to }
    }

    pub(crate) fn seconds(&self) -> f64 {
        seconds(self.to.at_ns - self.from.at_ns)
    }

    /// The increase of a count of the software.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let of = |tally: &Tally| tally.counts.get(name).copied().unwrap_or(0);
        of(self.to) - of(self.from)
    }

    fn of_disks(&self, what: impl Fn(&DiskFigures) -> u128) -> f64 {
        let sum = |tally: &Tally| tally.disks.iter().map(&what).sum::<u128>();
        (sum(self.to) - sum(self.from)) as f64
    }

    fn of_submitted(&self, what: impl Fn(&Submitted) -> u64) -> f64 {
        let sum = |tally: &Tally| tally.submitted.iter().map(&what).sum::<u64>();
        (sum(self.to) - sum(self.from)) as f64
    }

    /// Bytes that the disks completed as writes.
    pub(crate) fn written_bytes(&self) -> f64 {
        self.of_disks(|disk| disk.bytes.1.into())
    }

    /// Adds the reads from the disks to the experiment's metrics.
    pub(crate) fn with_reading(&self, metrics: Fields) -> Fields {
        let bytes = self.of_disks(|disk| disk.bytes.0.into());
        metrics
            .with("read_mb_per_s", rounded(bytes / MB / self.seconds(), 1))
            .with("read_seeks_per_gb", rounded(self.of_disks(|disk| disk.seeks.into()) / (bytes / 1e9).max(1e-9), 0))
    }

    /// Decimal megabytes a second on the disks.
    pub(crate) fn mb_per_s(&self) -> f64 {
        self.written_bytes() / MB / self.seconds()
    }

    /// The share of submitted bytes that came from tasks whose name begins with `name`.
    pub(crate) fn share_of_tasks(&self, name: &str) -> f64 {
        let begins = |submitted: &Submitted| {
            let own = submitted.by_task.iter().filter(|(task, _)| task.starts_with(name));
            own.map(|(_, bytes)| bytes).sum()
        };
        let own = self.of_submitted(begins);
        own / self.of_submitted(|submitted| submitted.bytes).max(1.0)
    }

    /// The mean number of tasks that submitted anything in a second, on all disks together. Averages over whole
    /// seconds, or over all touched seconds if there is no whole one.
    pub(crate) fn submitters(&self) -> f64 {
        let mut seconds = self.from.at_ns.div_ceil(Nanos::SECOND)..self.to.at_ns / Nanos::SECOND;
        if seconds.is_empty() {
            seconds = self.from.at_ns / Nanos::SECOND..self.to.at_ns / Nanos::SECOND + 1;
        }
        let count = seconds.clone().count() as f64;
        let of_second = |second: u64| {
            let tasks = self.to.submitted.iter().filter_map(|submitted| submitted.tasks_by_second.get(&second));
            tasks.flatten().collect::<BTreeSet<_>>().len() as f64
        };
        seconds.map(of_second).sum::<f64>() / count
    }

    /// The work of the disks and CPUs, as the experiment's metrics.
    pub(crate) fn metrics(&self, nr_requests: u64) -> Fields {
        let (seconds, commands) = (self.seconds(), self.of_disks(|disk| disk.commands.into()));
        let gb = (self.written_bytes() / 1e9).max(1e-9);
        let depth_ns = self.of_disks(|disk| disk.depth_ns);
        let places = nr_requests as f64 * self.to.disks.len() as f64;
        let command_bytes = self.of_disks(|disk| disk.command_bytes.into());
        let kib_mean = command_bytes / commands.max(1.0) / 1024.0;
        Fields::new()
            .with("throughput_mb_per_s", rounded(self.mb_per_s(), 1))
            .with("iops", rounded(commands / seconds, 0))
            .with("io_kib_mean", rounded(kib_mean, 1))
            .with("file_switches_per_gb", rounded(self.of_submitted(|it| it.file_switches) / gb, 0))
            .with("device_file_switches_per_gb", rounded(self.of_disks(|it| it.file_switches.into()) / gb, 0))
            .with("seeks_per_gb", rounded(self.of_disks(|disk| disk.seeks.into()) / gb, 0))
            .with("queue_fullness_mean", rounded(depth_ns / (seconds * 1e9) / places, 3))
            .with("submitters", rounded(self.submitters(), 1))
            .with("pdflush_share", rounded(self.share_of_tasks("pdflush"), 3))
            .with("cpu_percent", rounded((self.to.cpu_ns - self.from.cpu_ns) as f64 / seconds / 1e7, 1))
    }

    /// The counts of the software that changed, the bytes by submitter, and the waits of an engine's callers by device
    /// until the end of the span.
    pub(crate) fn software(&self) -> Value {
        let moved = self.to.counts.keys().map(|name| (*name, self.count(name)));
        let moved = moved.filter(|(_, count)| *count > 0);
        let mut all: Map<String, Value> = moved.map(|(name, count)| (name.to_owned(), json!(count))).collect();
        let names: BTreeSet<&str> = self.to.submitted.iter().flat_map(|it| it.by_task.keys().copied()).collect();
        for name in names {
            let bytes = self.of_submitted(|it| it.by_task.get(name).copied().unwrap_or(0));
            all.insert(format!("bytes_submitted_by_{}", name.replace(' ', "_")), json!(bytes as u64));
        }
        if !self.to.delays.is_null() {
            all.insert("delays".to_owned(), self.to.delays.clone());
        }
        Value::Object(all)
    }
}

/// Milliseconds of nanoseconds.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / Nanos::SECOND as f64
}

/// A figure with `places` digits after the point.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let factor = 10_f64.powi(places);
    (value * factor).round() / factor
}

/// A row of a simulated run.
pub(crate) fn row(experiment: &str, variant: &str, params: Fields, metrics: Fields, published: Fields) -> Row {
    let (experiment, variant) = (experiment.to_owned(), variant.to_owned());
    Row { experiment, variant, params, metrics, published, source: FigureSource::Simulated }
}

/// A row of a measured run.
pub(crate) fn measured_row(experiment: &str, variant: &str, params: Fields, metrics: Fields, published: Fields) -> Row {
    Row { source: FigureSource::Measured, ..row(experiment, variant, params, metrics, published) }
}
