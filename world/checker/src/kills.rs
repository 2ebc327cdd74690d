//! Runs with kills: the process dies between two steps or in the middle of one, its arena lives on, and a successor
//! goes on in it.
//!
//! Owns: the lives of a run, each in a world of its own; the remains of a kill; the return of each file; the number of
//! kills.
//! Does not own: the operations and their checks (`ops`), the checks at the end (`run`).
//! Invariants: a seed determines a run. A life that is not the last ends by a kill, also during recovery. The reference
//! models live on: an answer to a caller before a kill holds after it.

//! rule: 12: a kill loses nothing that was accepted, also during recovery
//! kept in: `product/engine/src/recovery/adopt.rs`, `product/engine/src/recovery/mod.rs`

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use afflux_engine::{Engine, File, Platform, Recovered};
use afflux_frames::Memory;
use afflux_reference::FileModel;
use afflux_simulator::{Disk, DiskFileId, DiskFiles, Random, RunError, SimMachine, SimPlatform, World};

use crate::bench::{ScenarioBench, Shared, key_of};
use crate::generate::generate;
use crate::locking::lock;
use crate::machine;
use crate::report::RunOptions;
use crate::run::{TROUBLE_NS_MAX, caught, finish, start_tasks};
use crate::text::{Op, Scenario};

/// Most kills of a run.
const KILLS_MAX: u64 = 8;
/// Time between two looks whether all files are adopted.
const LOOK_NS: u64 = 20_000;

/// The counts of a run with kills.
#[derive(Clone, Debug, Default)]
pub struct KillCounts {
    /// Kills.
    pub kills: u64,
    /// Of these, during recovery.
    pub in_recovery: u64,
    /// Of these, in the middle of a step.
    pub in_step: u64,
    /// Dirty pages that successors found.
    pub pages: u64,
    /// Pages that broke a rule: a fault, since no memory is damaged.
    pub quarantined: u64,
}

/// A file over all lives.
#[derive(Clone)]
struct RemainingFile {
    device: usize,
    disk_file: DiskFileId,
    model: FileModel,
}

/// The remains after a kill.
struct Remains {
    memory: Arc<Memory>,
    disks: Vec<DiskFiles>,
    files: Vec<RemainingFile>,
    versions: u64,
}

impl Remains {
    fn take(
        engine: &Engine<SimPlatform>,
        disks: &[Arc<Disk>],
        files: Vec<RemainingFile>,
        versions: u64,
        random: &mut Random,
    ) -> Result<Self, String> {
        let memory = engine.frames().memory().copy().map_err(|error| error.to_string())?;
        let disks = disks.iter().map(|disk| disk.files_after_kill(random)).collect();
        Ok(Self { memory, disks, files, versions })
    }

    fn of(bench: &ScenarioBench, random: &mut Random) -> Result<Self, String> {
        let file = |slot: &Mutex<Arc<Shared>>| {
            let shared = lock(slot);
            let model = lock(&shared.model).clone();
            RemainingFile { device: shared.device, disk_file: shared.disk_file, model }
        };
        let files = bench.slots.iter().map(file).collect();
        Self::take(&bench.engine, &bench.disks, files, bench.versions.load(Ordering::Relaxed), random)
    }
}

/// The scenario of one life of a seed. All lives have the same machine and other operations; nothing fails.
fn scenario_of(seed: u64, life: u64) -> Scenario {
    let machine = generate(seed);
    let own = if life == 0 { machine.clone() } else { generate(seed.wrapping_add(life << 40)) };
    let mut scenario = Scenario { tasks: own.tasks, rare: own.rare, ..machine };
    scenario.seed = scenario.seed.wrapping_add(life << 40);
    (scenario.crash_us, scenario.crash_step) = (0, 0);
    scenario.fail_requests.clear();
    scenario.devices.iter_mut().for_each(|device| device.capacity = 1 << 50);
    for task in &mut scenario.tasks {
        task.retain(|op| {
            !matches!(
                op,
                Op::Fault { .. }
                    | Op::Hang { .. }
                    | Op::Release { .. }
                    | Op::ClearFaults { .. }
                    | Op::Capacity { .. }
                    | Op::Knob { .. }
            )
        });
    }
    scenario
}

/// Runs a seed with kills, and checks it.
///
/// # Errors
/// The first failure, with the number of the life in which it showed.
pub fn run_with_kills(seed: u64, options: &RunOptions, counts: &mut KillCounts) -> Result<(), String> {
    let mut random = Random::new(seed).fork(0x6b_11);
    let kills = random.between(1, KILLS_MAX);
    let mut left = None;
    for life in 0..kills {
        // Recovery takes some dozen steps.
        let steps = 1 << random.between(1, 12);
        let steps_max = random.between(steps / 2, steps);
        let options = RunOptions { steps_max, ..options.clone() };
        let ended = caught(options.loud, || killed_life(seed, life, &options, left.take(), &mut random, counts));
        left = Some(ended.map_err(|error| format!("life {life}: {error}"))?);
        counts.kills += 1;
    }
    let last = caught(options.loud, || last_life(seed, kills, options, left, &mut random, counts));
    last.map_err(|error| format!("last life, {kills}: {error}"))
}

/// A life up to its kill.
fn killed_life(
    seed: u64,
    life: u64,
    options: &RunOptions,
    left: Option<Remains>,
    random: &mut Random,
    counts: &mut KillCounts,
) -> Result<Remains, String> {
    let scenario = scenario_of(seed, life);
    let world = machine::world(&scenario, options);
    let bench = match begin(&world, &scenario, left, random, counts)? {
        Begun::Lives(bench) => bench,
        Begun::Killed(remains) => {
            counts.in_recovery += 1;
            return Ok(remains);
        }
    };
    let killed = if random.chance(500) { kill_at_store(&bench, random)? } else { Arc::default() };
    start_tasks(&world, &scenario, &bench);
    let ended = bench.guarded(&world, bench.wait_for_tasks(TROUBLE_NS_MAX));
    if let Some(remains) = lock(&killed).take() {
        counts.in_step += 1;
        return remains;
    }
    match ended {
        Err(error) if world.steps() < options.steps_max || lock(&bench.failure).is_some() => Err(error),
        _ => Remains::of(&bench, random),
    }
}

/// The remains of a kill in the middle of a step, once it has come.
type Killed = Arc<Mutex<Option<Result<Remains, String>>>>;

/// Has the process die before some store to its arena. Later steps of the process have no effect.
fn kill_at_store(bench: &Arc<ScenarioBench>, random: &mut Random) -> Result<Killed, String> {
    let killed = Killed::default();
    let stores = 1 << random.between(1, 12);
    let (number, mut own) = (random.between(stores / 2, stores), random.fork(stores));
    let (weak, told) = (Arc::downgrade(bench), Arc::clone(&killed));
    let built_in = bench.engine.try_call_at_store(number, move || {
        let Some(bench) = weak.upgrade() else { return };
        *lock(&told) = Some(Remains::of(&bench, &mut own));
        bench.fail("killed".to_owned());
    });
    built_in.then_some(killed).ok_or_else(|| "a kill in a step needs the feature rare-paths".to_owned())
}

fn last_life(
    seed: u64,
    life: u64,
    options: &RunOptions,
    left: Option<Remains>,
    random: &mut Random,
    counts: &mut KillCounts,
) -> Result<(), String> {
    let scenario = scenario_of(seed, life);
    let world = machine::world(&scenario, options);
    let Begun::Lives(bench) = begin(&world, &scenario, left, random, counts)? else {
        return Err("recovery does not end".to_owned());
    };
    start_tasks(&world, &scenario, &bench);
    bench.guarded(&world, bench.wait_for_tasks(TROUBLE_NS_MAX))?;
    if random.chance(200) { bench.crash() } else { finish(&world, &bench) }
}

enum Begun {
    Lives(Arc<ScenarioBench>),
    Killed(Remains),
}

/// The machine of a life, with all files open.
fn begin(
    world: &World,
    scenario: &Scenario,
    left: Option<Remains>,
    random: &mut Random,
    counts: &mut KillCounts,
) -> Result<Begun, String> {
    let Some(Remains { memory, disks, files, versions }) = left else {
        return Ok(Begun::Lives(Arc::new(ScenarioBench::new(world, scenario)?)));
    };
    memory.header().check([0; 16]).map_err(|error| error.to_string())?;
    let verifier = memory.header().verifier();
    let recovered = Recovered::look(memory);
    counts.pages += recovered.files().map(|(_, pages)| pages as u64).sum::<u64>();
    counts.quarantined += recovered.quarantined().pages;
    if recovered.quarantined() != Default::default() {
        return Err(format!("undamaged memory, but {:?}", recovered.quarantined()));
    }
    let machine = machine::revived(world, scenario, recovered, disks)?;
    if machine.engine.frames().memory().header().verifier() != verifier {
        return Err("nothing is lost, but the verifier is new".to_owned());
    }
    forget_gone(&machine, &files);
    let opened = adopt_all(world, &machine, &files)?;
    let Some(opened) = opened else {
        let remains = Remains::take(&machine.engine, &machine.disks, files, versions, random)?;
        return Ok(Begun::Killed(remains));
    };
    let mut bench = ScenarioBench::on(machine, scenario)?;
    bench.versions.store(versions, Ordering::Relaxed);
    for (mut remaining, file) in files.into_iter().zip(opened) {
        remaining.model.end_all();
        let model = Arc::new(Mutex::new(remaining.model));
        bench.add(Shared::new(file, remaining.device, remaining.disk_file, model));
    }
    Ok(Begun::Lives(Arc::new(bench)))
}

/// Forgets found files that no task can reach any more: they were discarded.
fn forget_gone(machine: &SimMachine, files: &[RemainingFile]) {
    let known: Vec<_> = files.iter().map(|file| key_of(file.device, file.disk_file)).collect();
    for key in machine.engine.found_files().iter().filter(|key| !known.contains(key)) {
        machine.engine.try_forget_found(key);
    }
}

/// Adopts all files, or opens those that the memory did not have. `None` if the process is killed before the end.
fn adopt_all(world: &World, machine: &SimMachine, files: &[RemainingFile]) -> Result<Option<Vec<File>>, String> {
    let opened: Arc<Mutex<Vec<Option<File>>>> = Arc::new(Mutex::new(vec![None; files.len()]));
    for (at, file) in files.iter().enumerate() {
        let (engine, opened) = (Arc::clone(&machine.engine), Arc::clone(&opened));
        let (disk, device) = (Arc::clone(&machine.disks[file.device]), machine.devices[file.device]);
        let (disk_file, key) = (file.disk_file, key_of(file.device, file.disk_file));
        world.spawn("adopts", async move {
            let size = disk.size(disk_file);
            let adopted = engine.adopt(device, disk.backing(disk_file), &key, size).await;
            let file = adopted.unwrap_or_else(|| engine.open_persistent(device, disk.backing(disk_file), &key, size));
            lock(&opened)[at] = Some(file);
        });
    }
    let all = async {
        while lock(&opened).iter().any(Option::is_none) {
            machine.platform.sleep_until(machine.platform.now().after(LOOK_NS)).await;
        }
    };
    match world.run(all) {
        Ok(()) => Ok(Some(lock(&opened).iter().flatten().cloned().collect())),
        Err(RunError::StepsUp { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
