//! The machine that a case runs on: an engine under a law over devices of the table, with writers that are timed.
//!
//! Owns: the machine, its writers, and looks at the devices over virtual time.
//! Does not own: the loads (`loads`), the laws, the devices.
//! Invariants: every figure is counted by a writer, the engine or a disk; the same case gives the same figures.

use std::sync::{Arc, Mutex};

use afflux_engine::{DeviceId, Engine, File, Nanos, Platform};
use afflux_simulator::{CpuOptions, Disk, Memory, Random, SimPlatform, World, WorldOptions, catalogue};
use serde_json::Value;

use super::devices::{Device, Script};
use super::laws::Law;
use crate::delays::delays;
use crate::experiment::LabError;
use crate::machine::{PAGE_BYTES, laid_out, lock};

/// Virtual CPUs.
const CPUS: usize = 8;
/// Time between two looks at the devices.
const LOOK_NS: u64 = 20 * Nanos::MILLISECOND;
/// Most looks in a run: two hours of them.
const LOOKS_MAX: u64 = 360_000;

/// A device at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    pub(super) at_ns: u64,
    /// Bytes in flight included.
    pub(super) dirty_bytes: u64,
    /// Bytes that the disk has written since the beginning.
    pub(super) written_bytes: u64,
    /// Time with a request in flight, without the time in which the device stood still.
    pub(super) worked_ns: u64,
    /// The dirty limit as time, by the law's own estimate of the bandwidth; 0 if the law has none.
    pub(super) limit_ns: u64,
}

/// The order of a writer's offsets.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// In sequence.
    Onward,
    /// At random, at one of `pages` pages.
    AtRandom { pages: u64 },
}

/// The parameters of a writer.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    pub(super) order: Order,
    pub(super) call_bytes: u64,
    /// Time from the start of one call to the start of the next; 0 for no pause between calls.
    pub(super) every_ns: u64,
    /// Whether an fsync of the file follows each call.
    pub(super) syncs: bool,
    pub(super) until_ns: u64,
    pub(super) bytes_max: u64,
}

impl Writing {
    /// Calls of `call_bytes`, one after the other.
    pub(super) fn onward(call_bytes: u64, until_ns: u64) -> Self {
        let order = Order::Onward;
        Self { order, call_bytes, every_ns: 0, syncs: false, until_ns, bytes_max: u64::MAX }
    }
}

/// The record of a writer.
#[derive(Clone, Debug, Default)]
pub(super) struct WriterRecord {
    pub(super) bytes: u64,
    pub(super) writes_ns: Vec<u64>,
    pub(super) syncs_ns: Vec<u64>,
    pub(super) ended_ns: Option<u64>,
    failed: Option<String>,
}

pub(super) type Teller = Arc<Mutex<WriterRecord>>;

/// A machine with its devices.
pub(super) struct Rig {
    world: World,
    pub(super) engine: Arc<Engine<SimPlatform>>,
    pub(super) platform: Arc<SimPlatform>,
    pub(super) disks: Vec<Arc<Disk>>,
    devices: Vec<DeviceId>,
    looks: Arc<Mutex<Vec<Vec<Look>>>>,
    random: Mutex<Random>,
    files: Mutex<Vec<File>>,
    tellers: Mutex<Vec<Teller>>,
}

/// Adds a device's disk to a world, with its stalls and hangs.
pub(super) fn disk(world: &World, number: u64, device: &Device) -> Result<Arc<Disk>, LabError> {
    let disk = catalogue::make(world, number, &device.model()?);
    let (script, platform, own) = (device.script, Arc::clone(world.platform()), Arc::clone(&disk));
    if script != Script::None {
        world.spawn("script", async move {
            while let Some((from, until)) = script.next(platform.now().0) {
                platform.sleep_until(Nanos(from)).await;
                own.hang();
                platform.sleep_until(Nanos(until)).await;
                own.release();
            }
        });
    }
    Ok(disk)
}

pub(super) fn world(seed: u64) -> World {
    World::new(WorldOptions::machine(seed, CpuOptions::count(CPUS)))
}

impl Rig {
    /// The time that callers have waited so far, by device.
    pub(super) fn delays(&self) -> Value {
        delays(&self.engine, &self.devices)
    }

    pub(super) fn new(law: Law, devices: &[&Device], memory_bytes: u64, seed: u64) -> Result<Self, LabError> {
        let world = world(seed);
        let mut parts = afflux_simulator::SimMachine::new(&world, Memory::Stamped(memory_bytes), law.setup()?)
            .map_err(LabError::failed)?;
        for (number, device) in devices.iter().enumerate() {
            parts.add(device.name, disk(&world, number as u64, device)?);
        }
        let afflux_simulator::SimMachine { engine, platform, devices: numbers, disks, .. } = parts;
        let looks = Arc::new(Mutex::new(vec![Vec::new(); devices.len()]));
        let rig = Self {
            random: Mutex::new(Random::new(seed).fork(9)),
            devices: numbers,
            files: Mutex::default(),
            tellers: Mutex::default(),
            world,
            engine,
            platform,
            disks,
            looks,
        };
        rig.watch(devices.iter().map(|device| device.script).collect());
        Ok(rig)
    }

    fn watch(&self, scripts: Vec<Script>) {
        let (engine, platform, disks) = (Arc::clone(&self.engine), Arc::clone(&self.platform), self.disks.clone());
        let looks = Arc::clone(&self.looks);
        self.world.spawn("watch", async move {
            for _ in 0..LOOKS_MAX {
                let (now, status) = (platform.now(), engine.status());
                for (number, ((disk, device), script)) in disks.iter().zip(&status.devices).zip(&scripts).enumerate() {
                    let figures = disk.figures();
                    let bandwidth = device.write_bandwidth_bytes_per_s.unwrap_or(0);
                    let limit_ns = u128::from(device.dirty_limit_bytes) * u128::from(Nanos::SECOND);
                    lock(&looks)[number].push(Look {
                        at_ns: now.0,
                        dirty_bytes: device.dirty_bytes,
                        written_bytes: figures.bytes.1,
                        worked_ns: figures.busy_ns.saturating_sub(script.stood_ns(now.0)),
                        limit_ns: limit_ns.checked_div(u128::from(bandwidth)).unwrap_or(0) as u64,
                    });
                }
                platform.sleep_until(now.after(LOOK_NS)).await;
            }
        });
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    /// Lets time pass until `at_ns`.
    pub(super) fn until(&self, at_ns: u64) -> Result<(), LabError> {
        self.world.run(self.platform.sleep_until(Nanos(at_ns))).map_err(LabError::failed)?;
        let failure = lock(&self.tellers).iter().find_map(|teller| lock(teller).failed.clone());
        failure.map_or(Ok(()), |what| Err(LabError::failed(what)))
    }

    /// Lets time pass until `holds` is true, for at most `at_most_ns`; returns whether it is.
    pub(super) fn until_holds(&self, at_most_ns: u64, holds: impl Fn() -> bool) -> Result<bool, LabError> {
        let end_ns = self.now_ns() + at_most_ns;
        while !holds() {
            if self.now_ns() >= end_ns {
                return Ok(false);
            }
            self.until(self.now_ns() + LOOK_NS / 2)?;
        }
        Ok(true)
    }

    /// An empty file.
    pub(super) fn file(&self, device: usize) -> File {
        self.sized_file(device, 0)
    }

    /// A file whose bytes already have positions on the medium.
    pub(super) fn sized_file(&self, device: usize, bytes: u64) -> File {
        let file = laid_out(&self.engine, self.devices[device], &self.disks[device], bytes);
        lock(&self.files).push(file.clone());
        file
    }

    /// Starts a writer.
    pub(super) fn write(&self, file: &File, writing: Writing) -> Teller {
        let teller = Teller::default();
        lock(&self.tellers).push(Arc::clone(&teller));
        let (engine, platform, file) = (Arc::clone(&self.engine), Arc::clone(&self.platform), file.clone());
        let (own, random) = (Arc::clone(&teller), lock(&self.random).bits());
        self.world.spawn("writer", async move {
            if let Err(error) = write(&engine, &platform, &file, &writing, Random::new(random), &own).await {
                lock(&own).failed = Some(error.to_string());
            }
            lock(&own).ended_ns = Some(platform.now().0);
        });
        teller
    }

    /// Starts an fsync of every file, each in a task of its own. A teller ends when its fsync does.
    pub(super) fn sync_all(&self) -> Vec<Teller> {
        let files = lock(&self.files).clone();
        let sync = |file: File| {
            let (teller, engine) = (Teller::default(), Arc::clone(&self.engine));
            let (own, platform) = (Arc::clone(&teller), Arc::clone(&self.platform));
            self.world.spawn("sync", async move {
                let synced = engine.sync(&file, 0..u64::MAX).await;
                lock(&own).failed = synced.err().map(|error| error.to_string());
                lock(&own).ended_ns = Some(platform.now().0);
            });
            teller
        };
        files.into_iter().map(sync).collect()
    }

    pub(super) fn looks(&self, device: usize) -> Vec<Look> {
        lock(&self.looks)[device].clone()
    }

    pub(super) fn count(&self, counter: afflux_engine::counters::Counter) -> u64 {
        self.platform.counters().sum()[counter as usize]
    }
}

async fn write(
    engine: &Engine<SimPlatform>,
    platform: &SimPlatform,
    file: &File,
    writing: &Writing,
    mut random: Random,
    record: &Mutex<WriterRecord>,
) -> Result<(), afflux_engine::Error> {
    let piece = vec![0; writing.call_bytes as usize];
    let mut bytes = 0;
    loop {
        let began = platform.now();
        if began.0 >= writing.until_ns || bytes >= writing.bytes_max {
            return Ok(());
        }
        let at = match writing.order {
            Order::Onward => bytes,
            Order::AtRandom { pages } => random.below(pages) * PAGE_BYTES,
        };
        engine.write(file, at, &piece).await?;
        let written = platform.now();
        bytes += writing.call_bytes;
        {
            let mut record = lock(record);
            record.bytes = bytes;
            record.writes_ns.push(written.since(began));
        }
        if writing.syncs {
            engine.sync(file, at..at + writing.call_bytes).await?;
            lock(record).syncs_ns.push(platform.now().since(written));
        }
        if writing.every_ns > 0 {
            platform.sleep_until(began.after(writing.every_ns)).await;
        } else {
            platform.preemption_point().await;
        }
    }
}
