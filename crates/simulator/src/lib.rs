//! The deterministic world: the engine runs here in virtual time, on disks described by a few numbers.
//!
//! Owns: the virtual-time executor (`world`), what work costs its CPUs (`costs`), the simulated disk with
//! its faults (`disk`) and the devices that it can be (`catalogue`), links, what runs (`workload`), the
//! reference models that say what the engine may answer (`model`), whole runs for figures (`simulation`)
//! and for finding faults (`scenario`).
//! Does not own: the engine, which is the same code that runs on real disks; how figures are shown.
//! Invariants: nothing here reads a host clock, starts a thread, or depends on an address or on the
//! order of a hash table. The same seed and the same calls give the same trace hash.

#![forbid(unsafe_code)]

pub mod catalogue;
mod costs;
mod directory;
mod disk;
mod link;
mod model;
mod random;
pub mod scenario;
pub mod simulation;
mod trace;
pub mod workload;
mod world;

pub use costs::{COST_NS_MAX, CallerCost, Cost, CostError, CostOf, CostTable};
pub use directory::{MemoryTree, TreeOptions};
pub use disk::{
    Allocation, Disk, DiskFigures, DiskFileId, DiskOptions, Fault, FaultScript, FaultTarget, FaultWhat, FaultWindow,
    ScriptedFault, ScriptedWhat,
};
pub use link::{Closed, Link, LinkEnd, LinkError, LinkFigures, LinkOptions, serve_machine};
pub use model::conservation::Conservation;
pub use model::stamps::{PageStamp, StampLook, StampModel, StampWrite};
pub use model::{ChangeId, Ending, FileModel, Mismatch, Stamp, pattern};
pub use random::Random;
pub use world::{
    CPUS_MAX, CpuOptions, CpuTime, CpuUsage, RunError, SimPlatform, Slice, TaskUsage, World, WorldOptions,
};
