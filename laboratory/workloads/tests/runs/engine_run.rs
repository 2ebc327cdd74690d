//! Jobs on an engine that the caller has built: the same operations as in a simulation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afflux_simulator::{Disk, DiskOptions, Memory, Setup, SimMachine, World, WorldOptions};
use afflux_workloads::fio::{self, Alone};
use afflux_workloads::simulation::{DeviceChoice, JobOutcome, Simulation};
use afflux_workloads::{EngineRun, Job, Workload};

const SEED: u64 = 7;
const JOBS: &str = "
[mixed]
rw=randrw
rwmixread=30
bsrange=4k-16k
size=1m
numjobs=3
fsync=20
end_fsync=1
[after]
stonewall
rw=write
bs=64k
size=512k
fdatasync=3
";

fn jobs() -> Vec<Job> {
    fio::parse("jobs.fio", JOBS, &mut Alone("none")).unwrap().jobs
}

fn simulated() -> Vec<JobOutcome> {
    let mut simulation = Simulation::new(SEED, DeviceChoice::plain(DiskOptions::default()));
    simulation.memory_bytes = 64 << 20;
    simulation.workloads = jobs().into_iter().map(Workload::Job).collect();
    simulation.run(&mut |_| {}).unwrap().jobs
}

fn machine(world: &World) -> SimMachine {
    SimMachine::new(world, Memory::Whole(64 << 20), Setup::default()).unwrap()
}

type Sizes = BTreeMap<String, (u64, u64)>;

/// The jobs' figures, and for each file the requested size and its size at the end.
fn on_an_engine() -> (Vec<JobOutcome>, Sizes) {
    let world = World::new(WorldOptions::seed(SEED));
    let mut machine = machine(&world);
    let engine = Arc::clone(&machine.engine);
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let device = machine.add("disk", Arc::clone(&disk));
    let files = Mutex::new(BTreeMap::new());
    let open = |path: &str, bytes: u64| {
        let file = disk.create_file();
        disk.change_behind(file, bytes, 0, &vec![1; bytes as usize]);
        files.lock().unwrap().insert(path.to_owned(), (bytes, file));
        Ok(engine.open(device, disk.backing(file), bytes))
    };
    let run = EngineRun::new(&engine, &jobs(), SEED, &open).unwrap();
    let handle = run.handle();
    let outcomes = world.run(async {
        let outcomes = run.run().await;
        assert!(engine.drain(device).await.is_empty());
        outcomes
    });
    let outcomes = outcomes.unwrap();
    let written: u64 = outcomes.iter().map(|job| job.write.bytes).sum();
    assert_eq!(handle.accepted_bytes(), written);
    let sizes = files.into_inner().unwrap().into_iter();
    (outcomes, sizes.map(|(path, (bytes, file))| (path, (bytes, disk.size(file)))).collect())
}

#[test]
fn the_operations_are_those_of_a_simulation_of_the_same_seed() {
    let (ours, files) = on_an_engine();
    let theirs = simulated();
    let totals = |jobs: &[JobOutcome]| -> Vec<_> {
        let of = |job: &JobOutcome| {
            let (read, write) = (&job.read, &job.write);
            let syncs = (job.sync.ops, job.closing_sync.ops);
            (job.name.clone(), job.clones, (read.ops, read.bytes), (write.ops, write.bytes), syncs, job.errors.clone())
        };
        jobs.iter().map(of).collect()
    };
    assert_eq!(totals(&ours), totals(&theirs));
    assert!(ours.iter().all(|job| job.write.ops > 5 && job.sync.ops > 1 && job.errors.is_empty()));
    // Files to be read existed before, files that are only written did not. The second job did not start early.
    let expected: Sizes = [
        ("after.0.0", (0, 512 << 10)),
        ("mixed.0.0", (1 << 20, 1 << 20)),
        ("mixed.1.0", (1 << 20, 1 << 20)),
        ("mixed.2.0", (1 << 20, 1 << 20)),
    ]
    .into_iter()
    .map(|(path, sizes)| (path.to_owned(), sizes))
    .collect();
    assert_eq!(files, expected);
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_and_a_stop_ends_the_jobs() {
    let world = World::new(WorldOptions::seed(SEED));
    let mut machine = machine(&world);
    let engine = Arc::clone(&machine.engine);
    let error = EngineRun::new(&engine, &jobs(), SEED, &|path, _| Err(format!("{path}: no"))).map(drop).unwrap_err();
    assert_eq!(error, "after.0.0: no");
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let device = machine.add("disk", Arc::clone(&disk));
    let open = |_: &str, bytes: u64| Ok(engine.open(device, disk.backing(disk.create_file()), bytes));
    let run = EngineRun::new(&engine, &jobs(), SEED, &open).unwrap();
    run.handle().stop();
    let outcomes = world.run(run.run()).unwrap();
    assert_eq!(outcomes.iter().map(|job| job.write.ops + job.read.ops).sum::<u64>(), 0);
}
