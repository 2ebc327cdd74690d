//! An engine on simulated disks, with files for tests.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceId, Engine, Error, File, Nanos, Platform, Policies};
use afflux_reference::pattern;
use afflux_simulator::catalogue::{DeviceChoice, make};
use afflux_simulator::{Disk, DiskFileId, DiskOptions, Memory, Setup, SimMachine, SimPlatform, World, WorldOptions};

pub(crate) const SECOND: u64 = Nanos::SECOND;
pub(crate) const MILLISECOND: u64 = Nanos::MILLISECOND;
pub(crate) const PAGE: usize = 4096;

pub(crate) struct EngineFixture {
    pub(crate) world: World,
    pub(crate) here: Arc<Inside>,
}

/// The part of a lab that tasks may hold.
pub(crate) struct Inside {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) devices: Vec<DeviceId>,
}

#[derive(Clone)]
pub(crate) struct TestFile {
    pub(crate) file: File,
    pub(crate) disk: Arc<Disk>,
    pub(crate) id: DiskFileId,
}

impl EngineFixture {
    /// A cache of this many frames over these disks.
    pub(crate) fn new(seed: u64, frames: u64, disks: &[DiskOptions], knobs: &[&str]) -> Self {
        Self::with_policies(seed, frames, disks, knobs, Policies::default())
    }

    pub(crate) fn with_policies(
        seed: u64,
        frames: u64,
        disks: &[DiskOptions],
        knobs: &[&str],
        policies: Policies,
    ) -> Self {
        let world = World::new(WorldOptions { keep_lines: true, ..WorldOptions::seed(seed) });
        let setup = Setup { policies, ..Setup::default() }.with_knobs(knobs).unwrap();
        let machine = SimMachine::with_disks(&world, Memory::Whole(frames * PAGE as u64), setup, disks).unwrap();
        Self::of(world, machine)
    }

    /// A cache over a disk of the catalogue.
    pub(crate) fn on_disk(disk: &str, world: WorldOptions, memory: Memory, setup: Setup) -> Self {
        let world = World::new(world);
        let mut machine = SimMachine::new(&world, memory, setup).unwrap();
        machine.add(disk, make(&world, 0, &DeviceChoice::parse(disk).unwrap().model(None).unwrap()));
        Self::of(world, machine)
    }

    pub(crate) fn of(world: World, machine: SimMachine) -> Self {
        let SimMachine { platform, engine, disks, devices, .. } = machine;
        Self { world, here: Arc::new(Inside { platform, engine, disks, devices }) }
    }

    /// One ordinary disk.
    pub(crate) fn plain(seed: u64) -> Self {
        Self::new(seed, 256, &[DiskOptions::default()], &[])
    }

    /// A file of `size` bytes of pattern `version`, durable on the disk and not in the cache.
    pub(crate) fn file(&self, disk: usize, size: usize, version: u64) -> TestFile {
        let on = &self.here.disks[disk];
        let id = on.create_file();
        on.change_behind(id, size as u64, 0, &bytes(version, 0, size));
        let file = self.here.engine.open(self.here.devices[disk], on.backing(id), size as u64);
        TestFile { file, disk: Arc::clone(on), id }
    }

    /// A file of this many bytes that have their blocks on the first disk, and read as zeros.
    pub(crate) fn laid_out(&self, bytes: u64) -> TestFile {
        let disk = &self.here.disks[0];
        let id = disk.create_file();
        disk.make_sparse(id, bytes);
        disk.lay_out(id, bytes);
        let file = self.here.engine.open(self.here.devices[0], disk.backing(id), bytes);
        TestFile { file, disk: Arc::clone(disk), id }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a task beside the test, until the task or the lab ends.
    pub(crate) fn in_background(&self, task: impl Future<Output = ()> + Send + 'static) -> Arc<AtomicBool> {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        self.world.spawn("beside", async move {
            task.await;
            end.store(true, Ordering::Relaxed);
        });
        ended
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.here.platform.counters().get(counter)
    }

    /// Submissions of a kind of request (0 read, 1 write, 2 sync, 3 size) to disk 0, as instant, offset and length.
    pub(crate) fn submitted(&self, kind: u64) -> Vec<(u64, u64, u64)> {
        let lines = self.world.trace_lines();
        let submits = lines.iter().filter_map(|line| line.trim().split_once(" submit "));
        let numbers = submits.map(|(at, words)| {
            let words = words.trim_matches(['[', ']']).split(", ").map(|word| word.parse::<u64>().unwrap());
            (at.parse::<u64>().unwrap(), words.collect::<Vec<_>>())
        });
        numbers
            .filter(|(_, words)| words[0] == 0 && words[3] == kind)
            .map(|(at, words)| (at, words[4], words[5]))
            .collect()
    }
}

impl Inside {
    pub(crate) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    pub(crate) async fn sleep(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }

    pub(crate) async fn write(&self, to: &TestFile, offset: u64, len: usize, version: u64) -> Result<(), Error> {
        self.engine.write(&to.file, offset, &bytes(version, offset, len)).await
    }

    pub(crate) async fn read(&self, from: &TestFile, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut into = vec![0xa5; len];
        let count = self.engine.read(&from.file, offset, &mut into).await?;
        into.truncate(count);
        Ok(into)
    }

    pub(crate) async fn sync(&self, file: &TestFile) -> Result<(), Error> {
        self.engine.sync(&file.file, 0..u64::MAX).await
    }

    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.engine.status().dirty_bytes
    }

    /// Waits, up to `ns`, until the condition holds.
    pub(crate) async fn until(&self, ns: u64, holds: impl Fn() -> bool) -> bool {
        let end = self.now_ns() + ns;
        while !holds() {
            if self.now_ns() > end {
                return false;
            }
            self.sleep(MILLISECOND / 10).await;
        }
        true
    }
}

/// `len` bytes of a pattern at `offset`.
pub(crate) fn bytes(version: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern(version, offset, &mut bytes);
    bytes
}
