//! An engine over a volume in a simulated store.

use std::future::Future;
use std::sync::Arc;

use afflux_engine::{DeviceId, DeviceStatus, Engine, File, Nanos, Platform};
use afflux_object::{
    Compression, DeviceVolume, Fresh, ObjectDevice, ObjectVolume, PlatformClock, VolumeHeader, VolumeLimits,
    WatchedObjects,
};
use afflux_reference::pattern;
use afflux_simulator::{
    Memory, OWN_POLICY, ObjectContents, ObjectRecords, ObjectStore, Setup, SimMachine, SimPlatform, StoreOptions,
    World, WorldOptions,
};

pub(crate) const MILLISECOND: u64 = Nanos::MILLISECOND;
pub(crate) const SECOND: u64 = Nanos::SECOND;
pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: usize = 1 << 20;

pub(crate) type SimVolume = DeviceVolume<ObjectStore, ObjectRecords, PlatformClock<SimPlatform>, SimPlatform>;

/// A machine with a cache over a volume.
pub(crate) struct Machine {
    pub(crate) world: World,
    pub(crate) here: Arc<Inside>,
}

/// The part of a machine that tasks may hold.
pub(crate) struct Inside {
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) store: ObjectStore,
    pub(crate) volume: Arc<SimVolume>,
    pub(crate) device: DeviceId,
}

pub(crate) struct MachineOptions {
    pub(crate) seed: u64,
    pub(crate) memory: usize,
    pub(crate) store: StoreOptions,
    /// A dead segment is retained so long.
    pub(crate) dead_ns: u64,
    pub(crate) collects: bool,
    /// None, so that figures show the store and not the bytes.
    pub(crate) compression: Compression,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            memory: 256 * MIB,
            store: StoreOptions::default(),
            dead_ns: 600 * SECOND,
            collects: false,
            compression: Compression::None,
        }
    }
}

impl Machine {
    /// A machine that opens the volume in a store.
    pub(crate) fn new(contents: &ObjectContents, options: MachineOptions) -> Self {
        let MachineOptions { seed, memory, store, dead_ns, collects, compression } = options;
        let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(seed) });
        let store = ObjectStore::new(&world, contents, store);
        let platform = Arc::clone(world.platform());
        let limits = VolumeLimits { dead_ns, compression, ..VolumeLimits::default() };
        let volume = world.run(open(&platform, &store, limits)).unwrap_or_else(|error| panic!("{error}"));
        let setup = Setup::of(OWN_POLICY).unwrap();
        let engine = SimMachine::new(&world, Memory::Whole(memory as u64), setup).unwrap().engine;
        let device = engine.add_device("store", ObjectDevice::new(&platform, Arc::clone(&volume)));
        if collects {
            let kept = Arc::clone(&volume);
            world.spawn("upkeep", async move { drop(kept.upkeep(|error| panic!("{error}")).await) });
        }
        Self { world, here: Arc::new(Inside { platform, engine, store, volume, device }) }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }
}

async fn open(platform: &Arc<SimPlatform>, store: &ObjectStore, limits: VolumeLimits) -> Arc<SimVolume> {
    let records = ObjectRecords::open(platform, store).await.unwrap();
    let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
    let fresh = Fresh { header, verifier: platform.random_u64(), is_alone: false };
    let objects = WatchedObjects::new(platform, store.clone());
    Arc::new(ObjectVolume::open(objects, records, PlatformClock(Arc::clone(platform)), limits, fresh).await.unwrap())
}

impl Inside {
    pub(crate) fn open(&self, ino: u64, size: u64) -> File {
        let backing = ObjectDevice::<ObjectStore, ObjectRecords, PlatformClock<SimPlatform>, SimPlatform>::backing(ino);
        self.engine.open(self.device, backing, size)
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.platform.now().0
    }

    pub(crate) async fn sleep(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }

    pub(crate) async fn write(&self, file: &File, offset: u64, len: usize, version: u64) {
        self.engine.write(file, offset, &bytes(version, offset, len)).await.unwrap();
    }

    /// Writes to the end of the file, for ever.
    pub(crate) async fn write_on(&self, file: &File) {
        let data = bytes(1, 0, MIB);
        for at in 0_u64.. {
            self.engine.write(file, at * MIB as u64, &data).await.unwrap();
        }
    }

    pub(crate) async fn sync(&self, file: &File) {
        self.engine.sync(file, 0..u64::MAX).await.unwrap();
    }

    pub(crate) fn status(&self) -> DeviceStatus {
        self.engine.status().devices.remove(0)
    }
}

/// `len` bytes of a pattern at `offset`.
pub(crate) fn bytes(version: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern(version, offset, &mut bytes);
    bytes
}
