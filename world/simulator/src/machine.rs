//! A machine in a world: an engine under a policy, with memory, disks, and volumes above them.
//!
//! Owns: the assembly of these parts, for every run and test that needs an engine in virtual time.
//! Does not own: the world (it has to outlive a panic of a task in it), policies and knobs (`setup`), the machine's
//! workload.
//! Invariants: a disk has the number that its device has in the engine. If frames store stamps only, so do disks.

use std::sync::Arc;

use afflux_engine::policy::Remembered;
use afflux_engine::{Device, DeviceId, Engine, Recovered};
use afflux_frames::{ArenaError, Frames};
use afflux_volume::{HandleKey, NewDevice, Volume, VolumeError};

use crate::directory::MemoryTree;
use crate::disk::{Disk, DiskOptions};
use crate::setup::Setup;
use crate::world::{SimPlatform, World};

/// The key that seals the handles of simulated servers, the same in each run.
const KEY: [u8; 16] = [7; 16];

/// Page frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// This many bytes, all of them stored.
    Whole(u64),
    /// Frames for this many bytes, each of which stores only a stamp: a cache of 64 GB takes 256 MB.
    Stamped(u64),
}

/// An engine in virtual time, with its disks.
pub struct SimMachine {
    /// The world as the engine sees it.
    pub platform: Arc<SimPlatform>,
    /// The engine.
    pub engine: Arc<Engine<SimPlatform>>,
    /// Its disks, in the order in which they were added.
    pub disks: Vec<Arc<Disk>>,
    /// The number of each disk in the engine.
    pub devices: Vec<DeviceId>,
    stamped: bool,
}

impl SimMachine {
    /// A machine without disks.
    ///
    /// # Errors
    /// When the memory cannot be had, or is not a whole number of frames.
    pub fn new(world: &World, memory: Memory, setup: Setup) -> Result<Self, ArenaError> {
        let (frames, stamped) = match memory {
            Memory::Whole(bytes) => (Frames::new(bytes)?, false),
            Memory::Stamped(bytes) => (Frames::new_stamped(bytes)?, true),
        };
        Ok(Self { stamped, ..Self::over(world, frames, setup) })
    }

    /// A machine without disks, over frames of whole pages.
    pub fn over(world: &World, frames: Frames, setup: Setup) -> Self {
        let platform = Arc::clone(world.platform());
        let Setup { settings, policies } = setup;
        Self::of(world, Engine::with_policies(platform, settings, frames, policies))
    }

    /// A machine without disks. Its engine succeeds a killed one. `verifier` is the write verifier, if clients need a
    /// new one.
    pub fn recover(world: &World, recovered: Recovered, verifier: u64, setup: Setup) -> Self {
        let platform = Arc::clone(world.platform());
        let Setup { settings, policies } = setup;
        Self::of(world, Engine::recover(platform, settings, recovered, verifier, policies))
    }

    fn of(world: &World, engine: Arc<Engine<SimPlatform>>) -> Self {
        let platform = Arc::clone(world.platform());
        Self { platform, engine, disks: Vec::new(), devices: Vec::new(), stamped: false }
    }

    /// Like [`SimMachine::new`], with these disks, each called `disk`.
    ///
    /// # Errors
    /// Those of [`SimMachine::new`].
    pub fn with_disks(world: &World, memory: Memory, setup: Setup, disks: &[DiskOptions]) -> Result<Self, ArenaError> {
        let mut machine = Self::new(world, memory, setup)?;
        for (number, options) in disks.iter().enumerate() {
            machine.add("disk", Disk::new(world, number as u64, options.clone()));
        }
        Ok(machine)
    }

    /// Adds a disk that was made for this machine's world.
    pub fn add(&mut self, name: &str, disk: Arc<Disk>) -> DeviceId {
        let device = Arc::clone(&disk) as Arc<dyn Device>;
        self.add_behind(name, disk, device)
    }

    /// Like [`SimMachine::add`], for a disk about which the engine's policy remembers something from an earlier run.
    pub fn add_known(&mut self, name: &str, disk: Arc<Disk>, remembered: &Remembered) -> DeviceId {
        self.take(Arc::clone(&disk));
        let device = self.engine.add_known_device(name, disk as Arc<dyn Device>, remembered);
        self.number(device)
    }

    /// Adds a disk that the engine reaches through another device.
    pub fn add_behind(&mut self, name: &str, disk: Arc<Disk>, device: Arc<dyn Device>) -> DeviceId {
        self.take(disk);
        let device = self.engine.add_device(name, device);
        self.number(device)
    }

    /// Adds the tree's disk and a volume of the tree's exports.
    ///
    /// # Errors
    /// When the volume refuses the tree.
    pub fn add_tree(&mut self, name: &str, tree: &Arc<MemoryTree>) -> Result<Arc<Volume<SimPlatform>>, VolumeError> {
        let disk = Arc::clone(tree.disk());
        let (name, device) = (name.to_owned(), Arc::clone(&disk));
        let factory = Box::new(move |_, _: &_| Ok(NewDevice::unknown(name.clone(), Arc::clone(&device) as _)));
        self.take(disk);
        let volume = Volume::new(Arc::clone(&self.engine), Arc::clone(tree) as _, HandleKey::new(KEY), factory)?;
        self.number(DeviceId(self.devices.len() as u32));
        Ok(volume)
    }

    fn take(&mut self, disk: Arc<Disk>) {
        if self.stamped {
            disk.keep_stamps();
        }
        self.disks.push(disk);
    }

    fn number(&mut self, device: DeviceId) -> DeviceId {
        assert_eq!(device.0 as usize, self.devices.len(), "all devices of a machine are added by its methods");
        self.devices.push(device);
        device
    }
}
