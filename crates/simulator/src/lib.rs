//! The deterministic world: the engine runs here in virtual time, on disks described by a few numbers.
//!
//! Owns: the virtual-time executor (`world`), what work costs its CPUs (`costs`), the simulated disk with
//! its faults (`disk`), the models that say what the engine may answer (`model`), fio's jobs (`workload`),
//! whole runs (`simulation`).
//! Does not own: the engine, which is the same code that runs on real disks.
//! Invariants: nothing here reads a host clock, starts a thread, or depends on an address or on the
//! order of a hash table. The same seed and the same calls give the same trace hash.

#![forbid(unsafe_code)]

mod costs;
mod directory;
mod disk;
mod model;
mod random;
pub mod scenario;
pub mod simulation;
mod trace;
pub mod workload;
mod world;

pub use costs::{COST_NS_MAX, Cost, CostError, CostOf, CostTable};
pub use directory::{MemoryTree, TreeOptions};
pub use disk::{Disk, DiskFileId, DiskOptions, Fault, FaultTarget, FaultWhat};
pub use model::stamps::{PageStamp, StampLook, StampModel, StampWrite};
pub use model::{ChangeId, Ending, FileModel, Mismatch, Stamp, pattern};
pub use random::Random;
pub use world::{
    CPUS_MAX, CpuOptions, CpuTime, CpuUsage, RunError, SimPlatform, Slice, TaskUsage, World, WorldOptions,
};
