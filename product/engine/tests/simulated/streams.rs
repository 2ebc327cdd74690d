//! Streams of writes under the flush budget: disks, writers and their figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afflux_engine::DeviceStatus;
use afflux_engine::policy::FigureValue;
use afflux_simulator::{DiskOptions, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile};

pub(crate) const MIB: u64 = 1 << 20;
/// A disk of this many bytes per second that takes many requests.
pub(crate) fn disk(bytes_per_second: u64) -> DiskOptions {
    DiskOptions { bytes_per_second, request_bytes_max: 128 << 10, ..DiskOptions::default() }
}

pub(crate) const SLOW: u64 = 25_000_000;
pub(crate) const FAST: u64 = 2_000_000_000;

/// This much memory over these disks, under the policy.
pub(crate) fn lab(memory_bytes: u64, disks: &[DiskOptions]) -> EngineFixture {
    lab_of(3, memory_bytes, disks)
}

/// As [`lab`], in the world of this seed.
pub(crate) fn lab_of(seed: u64, memory_bytes: u64, disks: &[DiskOptions]) -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(seed) });
    let setup = Setup::of(OWN_POLICY).unwrap();
    let machine = SimMachine::with_disks(&world, Memory::Stamped(memory_bytes), setup, disks).unwrap();
    EngineFixture::of(world, machine)
}

/// A writer's figures.
#[derive(Default)]
pub(crate) struct Done {
    bytes: AtomicU64,
    /// The longest of the calls that began after the first seconds.
    longest_ns: AtomicU64,
    ended: AtomicBool,
    stop: AtomicBool,
}

impl Done {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn longest_ns(&self) -> u64 {
        self.longest_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Writes a new file on the disk from its start, with calls of `piece` bytes and pauses of `apart_ns` besides the
/// copy's time. It stops at `most` bytes or when told to. Calls in the first `unseen_ns` do not count as long ones.
pub(crate) struct Writer {
    pub(crate) disk: usize,
    pub(crate) piece: usize,
    pub(crate) most: u64,
    pub(crate) apart_ns: u64,
    pub(crate) unseen_ns: u64,
}

impl Writer {
    pub(crate) const STREAM: Self =
        Self { disk: 0, piece: 64 << 10, most: u64::MAX, apart_ns: 0, unseen_ns: 3 * SECOND };

    pub(crate) fn begins(self, lab: &EngineFixture) -> (TestFile, Arc<Done>) {
        let (file, done) = (lab.file(self.disk, 0, 0), Arc::new(Done::default()));
        let (here, to, own) = (Arc::clone(&lab.here), file.clone(), Arc::clone(&done));
        lab.world.spawn("writer", async move {
            let (bytes, from) = (vec![0; self.piece], here.now_ns() + self.unseen_ns);
            while own.bytes() < self.most && !own.stop.load(Ordering::Relaxed) {
                let began = here.now_ns();
                here.engine.write(&to.file, own.bytes(), &bytes).await.unwrap();
                if began >= from {
                    own.longest_ns.fetch_max(here.now_ns() - began, Ordering::Relaxed);
                }
                own.bytes.fetch_add(self.piece as u64, Ordering::Relaxed);
                // A page takes a microsecond to copy.
                here.sleep(self.apart_ns + 1000 * self.piece.div_ceil(PAGE) as u64).await;
            }
            own.ended.store(true, Ordering::Relaxed);
        });
        (file, done)
    }
}

impl EngineFixture {
    pub(crate) fn passes(&self, ns: u64) {
        let here = Arc::clone(&self.here);
        self.run(async move { here.sleep(ns).await });
    }

    /// The most dirty bytes in this time.
    pub(crate) fn most_dirty(&self, ns: u64) -> u64 {
        let here = Arc::clone(&self.here);
        self.run(async move {
            let (end, mut most) = (here.now_ns() + ns, 0);
            while here.now_ns() < end {
                most = most.max(here.dirty_bytes());
                here.sleep(MILLISECOND).await;
            }
            most
        })
    }

    /// Duration of a sync of the file.
    pub(crate) fn sync_ns(&self, file: &TestFile) -> u64 {
        let (here, file) = (Arc::clone(&self.here), file.clone());
        self.run(async move {
            let began = here.now_ns();
            here.sync(&file).await.unwrap();
            here.now_ns() - began
        })
    }

    /// Time until the writer has ended.
    pub(crate) fn ends_after(&self, done: &Arc<Done>) -> u64 {
        let (here, done) = (Arc::clone(&self.here), Arc::clone(done));
        self.run(async move {
            let began = here.now_ns();
            assert!(here.until(1000 * SECOND, || done.ended()).await, "no end");
            here.now_ns() - began
        })
    }

    pub(crate) fn figure(&self, disk: usize, name: &str) -> FigureValue {
        let status = self.here.engine.status();
        let figures = &status.devices[disk].figures;
        figures.iter().find(|figure| figure.info.name == name).unwrap_or_else(|| panic!("no {name}")).value
    }

    /// All figures of the disk, for messages.
    pub(crate) fn figures(&self, disk: usize) -> String {
        let status = self.here.engine.status();
        let figures = status.devices[disk].figures.iter();
        figures.map(|figure| format!("{} {:?}", figure.info.name, figure.value)).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn number(&self, disk: usize, name: &str) -> u64 {
        let FigureValue::Number(number) = self.figure(disk, name) else { panic!("{name} is no number") };
        number
    }

    pub(crate) fn status(&self, disk: usize) -> DeviceStatus {
        self.here.engine.status().devices.swap_remove(disk)
    }
}
