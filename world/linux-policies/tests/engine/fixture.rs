//! An engine under a policy, with files and writers.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceId, Engine, File, Nanos, Platform};
use afflux_reference::pattern;
use afflux_simulator::{Disk, DiskFileId, DiskOptions, Memory, Setup, SimMachine, SimPlatform, World, WorldOptions};

pub(crate) const SECOND: u64 = Nanos::SECOND;
pub(crate) const MILLISECOND: u64 = Nanos::MILLISECOND;
pub(crate) const PAGE: u64 = 4096;

pub(crate) struct EngineFixture {
    pub(crate) world: World,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) disks: Vec<Arc<Disk>>,
    pub(crate) devices: Vec<DeviceId>,
}

/// The progress of a writer.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) bytes: AtomicU64,
    pub(crate) longest_ns: AtomicU64,
    pub(crate) ended: AtomicBool,
    pub(crate) failed: AtomicBool,
}

impl Progress {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// 10 MB/s, requests of at most 128 KiB, a queue of 128.
pub(crate) fn slow() -> DiskOptions {
    DiskOptions { bytes_per_second: 10_000_000, request_bytes_max: 128 << 10, depth: 128, ..DiskOptions::default() }
}

impl EngineFixture {
    /// An engine with `frames` over these disks under the policy, with the kernel's knobs and `knobs`.
    pub(crate) fn new(name: &str, seed: u64, frames: u64, disks: &[DiskOptions], knobs: &[&str]) -> Self {
        let world = World::new(WorldOptions::seed(seed));
        let setup = Setup::of(name).unwrap().with_knobs(knobs).unwrap();
        let machine = SimMachine::with_disks(&world, Memory::Whole(frames * PAGE), setup, disks).unwrap();
        let SimMachine { platform, engine, disks, devices, .. } = machine;
        Self { world, engine, platform, disks, devices }
    }

    pub(crate) fn file(&self, disk: usize) -> (File, DiskFileId) {
        let id = self.disks[disk].create_file();
        (self.engine.open(self.devices[disk], self.disks[disk].backing(id), 0), id)
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Writes `bytes` to the file in calls of `call_bytes`, at full speed.
    pub(crate) fn stream(&self, file: &File, bytes: u64, call_bytes: u64) -> Arc<Progress> {
        self.stream_apart(file, bytes, call_bytes, 0)
    }

    /// As [`EngineFixture::stream`], with this pause after each call.
    pub(crate) fn stream_apart(&self, file: &File, bytes: u64, call_bytes: u64, apart_ns: u64) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let (engine, platform, file, own) =
            (Arc::clone(&self.engine), Arc::clone(&self.platform), file.clone(), Arc::clone(&progress));
        self.world.spawn("writer", async move {
            let mut piece = vec![0; call_bytes as usize];
            for at in (0..bytes).step_by(call_bytes as usize) {
                pattern(1, at, &mut piece);
                let began = platform.now();
                if engine.write(&file, at, &piece).await.is_err() {
                    own.failed.store(true, Ordering::Relaxed);
                    break;
                }
                own.longest_ns.fetch_max(platform.now().since(began), Ordering::Relaxed);
                own.bytes.fetch_add(call_bytes, Ordering::Relaxed);
                // The cost of copying a page: one microsecond.
                platform.sleep_until(platform.now().after(apart_ns + 1000 * call_bytes / PAGE)).await;
            }
            own.ended.store(true, Ordering::Relaxed);
        });
        progress
    }

    /// Reads a new file of `bytes` from its start in pages, with this pause after each.
    pub(crate) fn reads(&self, disk: usize, bytes: u64, apart_ns: u64) -> Arc<Progress> {
        let (on, progress) = (&self.disks[disk], Arc::new(Progress::default()));
        let id = on.create_file();
        on.make_sparse(id, bytes);
        on.lay_out(id, bytes);
        let file = self.engine.open(self.devices[disk], on.backing(id), bytes);
        let (engine, platform, own) = (Arc::clone(&self.engine), Arc::clone(&self.platform), Arc::clone(&progress));
        self.world.spawn("reader", async move {
            let mut page = vec![0; PAGE as usize];
            for at in (0..bytes).step_by(PAGE as usize) {
                engine.read(&file, at, &mut page).await.unwrap();
                own.bytes.fetch_add(PAGE, Ordering::Relaxed);
                platform.sleep_until(platform.now().after(apart_ns)).await;
            }
            own.ended.store(true, Ordering::Relaxed);
        });
        progress
    }

    pub(crate) fn sleep(&self, ns: u64) {
        self.run(self.platform.sleep_until(self.platform.now().after(ns)));
    }

    /// Waits, up to `ns`, until `holds` is true; looks every 10 ms.
    pub(crate) fn until(&self, ns: u64, mut holds: impl FnMut() -> bool) -> bool {
        let end = self.platform.now().0 + ns;
        while !holds() {
            if self.platform.now().0 > end {
                return false;
            }
            self.sleep(10 * MILLISECOND);
        }
        true
    }

    pub(crate) fn dirty_pages(&self) -> u64 {
        self.engine.status().dirty_bytes / PAGE
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.platform.counters().get(counter)
    }
}
