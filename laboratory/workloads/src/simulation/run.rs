//! Runs a description, from an empty machine to the checks at the end.
//!
//! Owns: the order of steps: files, jobs with their stonewalls, faults, the end of faults, settling, checks.
//! Does not own: a job's work (`runner`), the samples (`sampling`).
//! Invariants: every run ends. Its jobs are done or stopped, or nothing has moved for an hour of virtual time, or its
//! caller breaks it off, which is checked at each sample.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::counters::{COUNTERS, Counter};
use afflux_engine::{AccountOwner, DeviceDelays, Nanos, Platform};
use afflux_frames::FRAME_BYTES;

use super::description::{DeviceChoice, Progress, START_SHIFT_NS_MAX, Simulation, SimulationError};
use super::faults::{self, Parties};
use super::replaying::{self, Replayed};
use super::sampling::Sampler;
use super::serving::{self, Client, Served};
use super::settle;
use crate::contents::Contents;
use crate::locking::lock;
use crate::open_tasks::OpenTasks;
use crate::outcome::{DelayOutcome, DeviceOutcome, EngineOutcome, JobLog, Loss, LossCause, Outcome, Unwritten};
use crate::plan::{Plan, Start, plan};
use crate::recorder::{CallLog, grouped};
use crate::runner::{self, Doing, described};
use crate::simulated::{SimulatedSite, Volume, WorkFile, is_under};
use afflux_simulator::{CPUS_MAX, CpuOptions, Memory, Random, ScriptedWhat, SimMachine, World, WorldOptions};

/// Virtual time without any byte moved after which a run is given up.
const STUCK_NS: u64 = 3600 * Nanos::SECOND;

/// Describes a clone's current operation.
type Describe = Box<dyn Fn() -> String>;

struct Run<'a> {
    world: &'a World,
    machine: Arc<SimulatedSite>,
    left: Arc<Mutex<OpenTasks>>,
    sampler: Sampler,
    /// Started clones, for the report if they never end.
    started: Vec<(Arc<Doing>, Describe)>,
    /// The bytes moved at the last progress, and its time.
    moved: (u64, u64),
    bytes_total: Option<u64>,
    time_total_ns: Option<u64>,
    /// The time and the cause of the end of everything in memory.
    ending: Option<(u64, LossCause)>,
    clients: &'a [Client],
    /// The delay of each client's start relative to the description.
    client_shifts_ns: Vec<u64>,
    replays: &'a [Replayed],
    /// Once set, no further fault begins.
    faults_over: Arc<AtomicBool>,
    /// Devices may have been made full by a fault.
    no_space: bool,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// `progress` broke the run off: it waits for nothing any more.
    cut: bool,
}

/// A finished run's data for its outcome.
struct Ended {
    sampler: Sampler,
    virtual_ns: u64,
    settle_ns: u64,
    cpu_busy_ns: u64,
    unwritten: Vec<Unwritten>,
    loss: Option<Loss>,
    cut: bool,
}

impl Simulation {
    pub(super) fn world_options(&self) -> WorldOptions {
        WorldOptions {
            keep_lines: self.keep_trace,
            steps_max: u64::MAX,
            time_ns_max: u64::MAX / 2,
            ..WorldOptions::machine(
                self.seed,
                CpuOptions { costs: self.costs.clone(), ..CpuOptions::count(self.cpus as usize) },
            )
        }
    }

    /// Runs to the end: all jobs done or stopped, faults off, everything written out as by `sync`, all checks passed. A
    /// power loss or a kill ends it earlier, followed by its checks. `progress` is called at every sample, a few
    /// thousand times in all.
    ///
    /// # Errors
    /// When the description is wrong, the run cannot continue, or a check fails.
    pub fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, SimulationError> {
        self.run_while(&mut |now| {
            progress(now);
            ControlFlow::Continue(())
        })
    }

    /// Like [`Simulation::run`], but `progress` may break the run off. The run then ends at once, with nothing written
    /// out and no disk checked, and its outcome is [`Outcome::cut`].
    ///
    /// # Errors
    /// Those of [`Simulation::run`].
    pub fn run_while(&self, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Outcome, SimulationError> {
        if !(1..=CPUS_MAX).contains(&(self.cpus as usize)) {
            return Err(SimulationError::Description(format!("{} CPUs are not within 1 to {CPUS_MAX}", self.cpus)));
        }
        let world = World::new(self.world_options());
        let wrong = SimulationError::Description;
        let (machine, served) = self.machine(&world)?;
        let machine = Arc::new(machine);
        let mut plan = plan(&self.workloads, &*machine, &Random::new(self.seed).fork(4)).map_err(wrong)?;
        if plan.past_cache_bytes > 0 {
            machine.reserve_past_cache(plan.past_cache_bytes).map_err(wrong)?;
        }
        let streams: Vec<_> = serving::streams(&self.workloads).collect();
        let clients = serving::clients(&streams, &world, &machine, &served).map_err(wrong)?;
        let replays = replaying::replayed(&self.workloads, &machine).map_err(wrong)?;
        let bytes = streams.iter().map(|stream| stream.client.file_bytes).sum::<u64>()
            + replaying::replays(&self.workloads).map(|replay| replay.trace.moved_bytes()).sum::<u64>();
        plan.bytes = plan.bytes.map(|planned| planned.saturating_add(bytes));
        let mut shifts = self.start_shifts();
        let clones = plan.starts.iter_mut().flat_map(|start| &mut start.clones);
        clones.for_each(|clone| clone.delay_ns = clone.delay_ns.saturating_add(shifts()));
        let client_shifts_ns = clients.iter().map(|_| shifts()).collect();
        let parties = Parties { script: &self.faults, devices: &self.devices, machine: &machine, clients: &clients };
        let faults_over = parties.schedule(&world).map_err(wrong)?;
        let run = Run {
            world: &world,
            left: Arc::default(),
            sampler: Sampler::new(machine.volumes.len()),
            started: Vec::new(),
            moved: (0, 0),
            bytes_total: plan.bytes,
            time_total_ns: plan.time_ns.map(|ns| ns.min(self.until_ns.unwrap_or(u64::MAX))).or(self.until_ns),
            ending: faults::ending(&self.faults),
            clients: &clients,
            client_shifts_ns,
            replays: &replays,
            faults_over,
            no_space: self.faults.entries.iter().any(|entry| matches!(entry.what, ScriptedWhat::NoSpace)),
            progress,
            cut: false,
            machine: Arc::clone(&machine),
        };
        let ended = world.run(run.finish(std::mem::take(&mut plan.starts)));
        let ended = ended.map_err(|error| error.to_string()).and_then(|ended| ended);
        let ended = match machine.failure() {
            Some(what) => Err(what),
            None => ended,
        };
        let at_ns = machine.now_ns();
        let ended = ended.map_err(|what| SimulationError::Run { what, seed: self.seed, at_ns })?;
        Ok(self.outcome(&world, &machine, &plan, &clients, &replays, ended))
    }

    /// The delays of starts relative to the description, in order.
    fn start_shifts(&self) -> impl FnMut() -> u64 + use<> {
        let (shift, mut random) = (self.shift, Random::new(self.seed).fork(5).fork(self.shift));
        move || if shift == 0 { 0 } else { random.below(START_SHIFT_NS_MAX) }
    }

    /// The machine, and the devices that a server serves, by number.
    pub(super) fn machine(&self, world: &World) -> Result<(SimulatedSite, BTreeMap<usize, Served>), SimulationError> {
        let wrong = SimulationError::Description;
        if self.devices.is_empty() {
            return Err(wrong("there is no device".to_owned()));
        }
        let setup = self.setup()?;
        let bytes = self.memory_bytes / FRAME_BYTES as u64 * FRAME_BYTES as u64;
        let memory = if self.contents == Contents::Exact { Memory::Whole(bytes) } else { Memory::Stamped(bytes) };
        let mut machine = SimMachine::new(world, memory, setup).map_err(|error| wrong(format!("memory: {error}")))?;
        let wanted = self.served();
        let mut served = BTreeMap::new();
        let mut volumes: Vec<Volume> = Vec::new();
        for (number, choice) in self.devices.iter().enumerate() {
            let directory = choice.directory.clone().unwrap_or_default();
            let name = choice.directory.clone().unwrap_or_else(|| "disk".to_owned());
            if volumes.iter().any(|volume| volume.directory == directory) {
                return Err(wrong(format!("two devices are for '{name}'")));
            }
            let disk = (choice.make)(world, number as u64).map_err(wrong)?;
            if wanted.contains(&number) {
                served.insert(number, serving::serve(world, &mut machine, &name, &disk).map_err(wrong)?);
            } else {
                machine.add(&name, Arc::clone(&disk));
            }
            volumes.push(Volume {
                directory,
                name,
                disk,
                device: machine.devices[number],
                accepted_bytes: Default::default(),
                last_accepted_ns: Default::default(),
            });
        }
        let stop_ns = self.until_ns.unwrap_or(u64::MAX);
        let (call_ns, copies) = self.caller_costs();
        Ok((SimulatedSite::new(&machine, volumes, self.contents, call_ns, copies, stop_ns), served))
    }

    /// The devices that NFS clients write to.
    fn served(&self) -> BTreeSet<usize> {
        let device_of = |path: String| {
            let directory = |choice: &DeviceChoice| choice.directory.clone().unwrap_or_default();
            let above =
                self.devices.iter().map(directory).enumerate().filter(|(_, directory)| is_under(&path, directory));
            above.max_by_key(|(_, directory)| directory.trim_end_matches('/').len()).map(|(at, _)| at)
        };
        serving::streams(&self.workloads).filter_map(|stream| device_of(stream.path())).collect()
    }

    fn outcome(
        &self,
        world: &World,
        machine: &SimulatedSite,
        plan: &Plan<WorkFile>,
        clients: &[Client],
        replays: &[Replayed],
        mut ended: Ended,
    ) -> Outcome {
        let counters = machine.platform.counters().sum();
        let status = machine.engine.status();
        let count = |counter: Counter| counters[counter as usize];
        let devices = self.devices.iter().zip(&machine.volumes).enumerate();
        // The disk's own figures rather than the engine's: they are per device, and after merging.
        let devices = devices.map(|(at, (choice, volume))| {
            let figures = volume.disk.figures();
            let waits = machine.engine.waits(volume.device).unwrap_or_default().delays;
            DeviceOutcome {
                name: volume.name.clone(),
                model: choice.model.clone(),
                busy_ns: figures.busy_ns,
                requests: figures.requests,
                bytes: figures.bytes,
                seeks: figures.seeks,
                file_switches: figures.file_switches,
                delays: delays(&waits),
                delays_of_others: waits.others,
                others: waits.others_count,
                samples: ended.sampler.samples(at),
                offsets: volume.disk.offsets(),
            }
        });
        let rows = clients.iter().map(|client| &client.row).chain(replays.iter().map(|replay| &replay.row));
        let rows: Vec<_> = rows.chain(&plan.rows).collect();
        Outcome {
            seed: self.seed,
            trace_hash: world.trace_hash(),
            virtual_ns: ended.virtual_ns,
            jobs: rows.iter().map(|row| lock(row).outcome()).collect(),
            groups: grouped(&rows, rows.len() - plan.rows.len()),
            devices: devices.collect(),
            engine: EngineOutcome {
                cache_bytes: status.cache_bytes,
                counters: COUNTERS.iter().map(|counter| counter.name).zip(counters).collect(),
                pauses: vec![("dirty limit".to_owned(), count(Counter::ThrottlePauses), count(Counter::ThrottleNs))],
                cpu_busy_ns: ended.cpu_busy_ns,
                cpus: self.cpus,
                callers: self.callers_in_words(),
            },
            at_risk_bytes_max: ended.sampler.at_risk_bytes_max,
            settle_ns: ended.settle_ns,
            unwritten: ended.unwritten,
            loss: ended.loss,
            cut: ended.cut,
            trace_lines: world.trace_lines(),
            logs: plan.logs.iter().map(log).collect(),
        }
    }
}

fn log(log: &Arc<Mutex<CallLog>>) -> JobLog {
    let log = &mut *lock(log);
    let calls = std::mem::take(&mut log.calls);
    JobLog { number: log.number, logs: log.logs.clone(), calls, left_out: log.left_out }
}

/// The tasks that waited, the longest wait first.
fn delays(told: &DeviceDelays) -> Vec<DelayOutcome> {
    let who = |whose: &AccountOwner| match whose {
        AccountOwner::Client(client) => client.to_string(),
        AccountOwner::File(_) => "nobody in particular".to_owned(),
    };
    let all = told.accounts.iter().map(|one| DelayOutcome { who: who(&one.whose), times: one.times });
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| (other.times.ns(), &one.who).cmp(&(one.times.ns(), &other.who)));
    all
}

impl Run<'_> {
    async fn finish(mut self, starts: Vec<Start<WorkFile>>) -> Result<Ended, String> {
        let stop_ns = self.machine.stop_ns.load(Ordering::Relaxed);
        let crash_ns = self.ending.map_or(u64::MAX, |(at_ns, _)| at_ns);
        for (client, shift_ns) in self.clients.iter().zip(&self.client_shifts_ns) {
            let (platform, begins) = (Arc::clone(&self.machine.platform), Nanos(*shift_ns));
            let run = client.run(&self.machine);
            self.spawn("nfs client", async move {
                if begins > platform.now() {
                    platform.sleep_until(begins).await;
                }
                run.await;
            });
        }
        for replay in self.replays {
            self.spawn("replay", replay.run(&self.machine));
        }
        for start in starts {
            if start.stonewall {
                self.wait(stop_ns.min(crash_ns)).await?;
            }
            if self.machine.now_ns() < stop_ns.min(crash_ns) && !self.cut {
                start.clones.into_iter().for_each(|clone| self.start(clone));
            }
        }
        self.wait(stop_ns.min(crash_ns)).await?;
        if self.cut {
            return Ok(self.break_off());
        }
        // Jobs stop; their operations must end now, or when power is lost.
        self.machine.stop_ns.store(0, Ordering::Relaxed);
        if let Some((at_ns, cause)) = self.ending {
            self.wait(at_ns).await?;
            if self.cut {
                return Ok(self.break_off());
            }
            self.idle(at_ns).await;
            return Ok(self.lose(cause, at_ns));
        }
        self.end_faults();
        self.wait(u64::MAX).await?;
        let unwritten = self.settle().await?;
        if self.cut {
            return Ok(self.break_off());
        }
        let virtual_ns = self.machine.now_ns();
        let cpu_busy_ns = self.world.cpu_usage().busy_ns();
        self.sampler.look(&self.machine);
        let accepted = self.machine.volumes.iter().map(|volume| volume.last_accepted_ns.load(Ordering::Relaxed));
        let settle_ns = accepted.max().filter(|ns| *ns > 0).map_or(0, |ns| virtual_ns - ns);
        if unwritten.is_empty() {
            settle::check_clean(&self.machine)?;
        }
        // Unwritten data leaves the disks partly stale, as after a crash.
        self.check_disks(!unwritten.is_empty());
        // A server holds its files, and the files hold their pages.
        if unwritten.is_empty() && self.clients.is_empty() {
            settle::check_frames(&self.machine).await?;
        }
        Ok(Ended { sampler: self.sampler, virtual_ns, settle_ns, cpu_busy_ns, unwritten, loss: None, cut: false })
    }

    /// The current figures; all jobs are in the middle of their operations.
    fn break_off(mut self) -> Ended {
        self.sampler.look(&self.machine);
        Ended {
            sampler: self.sampler,
            virtual_ns: self.machine.now_ns(),
            settle_ns: 0,
            cpu_busy_ns: self.world.cpu_usage().busy_ns(),
            unwritten: Vec::new(),
            loss: None,
            cut: true,
        }
    }

    fn end_faults(&self) {
        self.faults_over.store(true, Ordering::Relaxed);
        for volume in &self.machine.volumes {
            volume.disk.clear_faults();
            volume.disk.release();
            if self.no_space {
                volume.disk.restore_capacity();
            }
        }
    }

    fn check_disks(&self, crashed: bool) {
        self.machine.check_disks(crashed);
        self.clients.iter().for_each(|client| client.check(&self.machine, crashed));
    }

    /// Runs the machine without jobs until `at_ns`.
    async fn idle(&mut self, at_ns: u64) {
        while self.machine.now_ns() < at_ns {
            let next_ns = self.sampler.next_ns().min(at_ns);
            self.machine.platform.sleep_until(Nanos(next_ns)).await;
            self.sampler.look(&self.machine);
        }
    }

    /// Loses everything in memory, in the middle of all operations.
    fn lose(mut self, cause: LossCause, at_ns: u64) -> Ended {
        let virtual_ns = self.machine.now_ns();
        self.sampler.look(&self.machine);
        for volume in &self.machine.volumes {
            match cause {
                LossCause::PowerLoss => volume.disk.crash(),
                LossCause::Kill => volume.disk.kill_process(),
            }
        }
        self.check_disks(true);
        let accepted = self.machine.volumes.iter().map(|volume| volume.accepted_bytes.load(Ordering::Relaxed));
        let mut files = self.machine.lost_bytes();
        let clients = self.clients.iter().map(|client| (client.path.clone(), client.lost_bytes(&self.machine)));
        files.extend(clients.filter(|(_, bytes)| *bytes > 0));
        let lost_bytes = files.iter().map(|(_, bytes)| bytes).sum();
        let checked = self.machine.kind != Contents::Unchecked;
        let loss =
            Loss { cause, at_ns, accepted_bytes: accepted.sum(), lost_bytes: checked.then_some(lost_bytes), files };
        let cpu_busy_ns = self.world.cpu_usage().busy_ns();
        let loss = Some(loss);
        Ended { sampler: self.sampler, virtual_ns, settle_ns: 0, cpu_busy_ns, unwritten: Vec::new(), loss, cut: false }
    }

    fn start(&mut self, clone: runner::Clone<WorkFile>) {
        let (name, number, files) = (clone.name.clone(), clone.number, clone.files.clone());
        let doing = Arc::clone(&clone.doing);
        let seen = Arc::clone(&doing);
        self.started.push((seen, Box::new(move || described(&name, number, &files, &doing))));
        let machine = Arc::clone(&self.machine);
        self.spawn("job", runner::run(machine, clone));
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.left).count += 1;
        let left = Arc::clone(&self.left);
        self.world.spawn(name, async move {
            task.await;
            OpenTasks::ended(&left);
        });
    }

    async fn settle(&mut self) -> Result<Vec<Unwritten>, String> {
        let (machine, result) = (Arc::clone(&self.machine), Arc::new(Mutex::new(Vec::new())));
        let told = Arc::clone(&result);
        self.spawn("settle", async move {
            let settled = settle::settle(&machine).await;
            *lock(&told) = settled;
        });
        self.wait(u64::MAX).await?;
        Ok(std::mem::take(&mut *lock(&result)))
    }

    /// Waits until all started tasks have ended, or until `until_ns`; takes samples meanwhile. A run that was broken
    /// off waits for nothing.
    async fn wait(&mut self, until_ns: u64) -> Result<(), String> {
        while !self.cut {
            let next_ns = self.sampler.next_ns().min(until_ns);
            let mut sleep = pin!(self.machine.platform.sleep_until(Nanos(next_ns)));
            let all_ended = poll_fn(|cx| {
                let mut left = lock(&self.left);
                if left.count == 0 {
                    return Poll::Ready(true);
                }
                left.waker = Some(cx.waker().clone());
                drop(left);
                sleep.as_mut().poll(cx).map(|()| false)
            })
            .await;
            if let Some(what) = self.machine.failure() {
                return Err(what);
            }
            let now_ns = self.machine.now_ns();
            if all_ended || now_ns >= until_ns {
                return Ok(());
            }
            self.sampler.look(&self.machine);
            self.watch(now_ns)?;
            let bytes = self.machine.moved_bytes.load(Ordering::Relaxed);
            let (bytes_total, time_total_ns) = (self.bytes_total, self.time_total_ns);
            self.cut = (self.progress)(Progress { virtual_ns: now_ns, bytes, bytes_total, time_total_ns }).is_break();
        }
        Ok(())
    }

    /// An error if nothing has moved for long and no clone is in a pause.
    fn watch(&mut self, now_ns: u64) -> Result<(), String> {
        let counters = self.machine.platform.counters();
        let moving = [Counter::PageIn, Counter::PagesWritten, Counter::PagesDirtied, Counter::SyncRequests];
        let moved = moving.into_iter().map(|counter| counters.get(counter)).sum::<u64>()
            + self.machine.moved_bytes.load(Ordering::Relaxed);
        let pauses = self.started.iter().any(|(doing, _)| doing.pauses());
        if moved != self.moved.0 || pauses {
            self.moved = (moved, now_ns);
        }
        if now_ns - self.moved.1 < STUCK_NS {
            return Ok(());
        }
        let jobs = self.started.iter().filter(|(doing, _)| doing.is_busy()).map(|(_, say)| say());
        let doing: Vec<String> = jobs.chain(self.clients.iter().filter_map(Client::described)).collect();
        let hung = self.machine.volumes.iter().filter(|volume| volume.disk.is_hung());
        let hung: Vec<&str> = hung.map(|volume| volume.name.as_str()).collect();
        Err(format!(
            "deadlock: nothing has moved for an hour; jobs: {}; devices that hang: {}; tasks that wait: {}",
            doing.join("; "),
            hung.join(", "),
            self.world.waiting().join(", ")
        ))
    }
}
