//! The same seed gives the same run, to the last event, in every kind of world; another seed gives another run.

//! rule: 11: the same seed gives the same trace

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{
    CpuOptions, CpuUsage, Disk, DiskOptions, Memory, Random, Setup, SimMachine, Slice, World, WorldOptions,
};

const PAGE: u64 = 4096;

/// Everything about a run that must not change.
#[derive(PartialEq, Eq, Debug)]
struct Run {
    trace_hash: u64,
    steps: u64,
    now: Nanos,
    counters: Vec<u64>,
    usage: CpuUsage,
}

/// Tasks that read and write one large file at random through a small cache, on two disks.
fn run(options: WorldOptions, tasks: u64) -> Run {
    let seeds = Random::new(options.seed).fork(99);
    let world = World::new(options);
    let platform = Arc::clone(world.platform());
    let mut machine = SimMachine::new(&world, Memory::Whole(512 * PAGE), Setup::default()).unwrap();
    let files: Vec<_> = (0..2)
        .map(|number| {
            let disk = Disk::new(&world, number, DiskOptions { inline_per_mille: 100, ..DiskOptions::default() });
            let file = disk.create_file();
            disk.change_behind(file, 1024 * PAGE, 0, &[]);
            let backing = disk.backing(file);
            let device = machine.add("disk", disk);
            machine.engine.open(device, backing, 1024 * PAGE)
        })
        .collect();
    let engine = machine.engine;
    for task in 0..tasks {
        let (platform, engine, files) = (Arc::clone(&platform), Arc::clone(&engine), files.clone());
        let mut random = seeds.fork(task);
        world.spawn("worker", async move {
            let mut page = [1; PAGE as usize];
            for _ in 0..2000 / tasks + 2 {
                let file = random.pick(&[&files[0], &files[1]]);
                let at = random.below(1024) * PAGE;
                if random.chance(400) {
                    engine.write(file, at, &page).await.unwrap();
                } else {
                    engine.read(file, at, &mut page).await.unwrap();
                }
                platform.preemption_point().await;
                if random.chance(50) {
                    engine.sync(file, 0..u64::MAX).await.unwrap();
                }
            }
        });
    }
    world.run(platform.sleep_until(Nanos(60 * Nanos::SECOND))).unwrap();
    assert!(!world.waiting().iter().any(|name| name.starts_with("worker")), "all work was done");
    Run {
        trace_hash: world.trace_hash(),
        steps: world.steps(),
        now: platform.now(),
        counters: platform.counters().sum().to_vec(),
        usage: world.cpu_usage(),
    }
}

fn check(kind: &str, tasks: u64, options: impl Fn(u64) -> WorldOptions) {
    let mut hashes = BTreeSet::new();
    for seed in 1..=4 {
        let first = run(options(seed), tasks);
        // A world of another kind in between must leave nothing behind on the thread.
        run(WorldOptions::seed(seed + 100), 3);
        assert_eq!(first, run(options(seed), tasks), "{kind}, seed {seed}");
        hashes.insert(first.trace_hash);
    }
    assert_eq!(hashes.len(), 4, "{kind}: another seed, another run");
}

#[test]
fn tests_own_world() {
    check("shuffled", 8, WorldOptions::seed);
}

#[test]
fn one_cpu() {
    check("one CPU", 8, |seed| WorldOptions::machine(seed, CpuOptions::count(1)));
}

#[test]
fn eight_cpus_with_slices_of_random_length() {
    check("eight CPUs", 40, |seed| {
        let slice = Slice::Exponential(2_000);
        WorldOptions::machine(seed, CpuOptions { slice, switch_per_mille: 20, ..CpuOptions::count(8) })
    });
}

#[test]
fn a_thousand_tasks() {
    check("a thousand tasks", 1000, |seed| WorldOptions::machine(seed, CpuOptions::count(8)));
}

#[test]
fn another_thread_gives_the_same_run() {
    let options = || WorldOptions::machine(9, CpuOptions::count(8));
    let here = run(options(), 40);
    let there = std::thread::spawn(move || run(options(), 40)).join().unwrap();
    assert_eq!(here, there);
}
