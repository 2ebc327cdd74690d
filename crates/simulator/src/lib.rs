//! The deterministic world: the engine runs here in virtual time, on disks described by a few numbers.
//!
//! Owns: the virtual-time executor (`world`), what work costs its CPUs (`costs`), the simulated disk with
//! its faults (`disk`, `fault_script`) and the devices that it can be (`catalogue`), links (`link`), a tree of
//! names in memory (`directory`), and machines put together from these (`machine`, `setup`).
//! Does not own: the engine, which is the same code that runs on real disks; what runs here: workloads and
//! their figures (the crate `workloads`), the search for faults (`checker`).
//! Invariants: nothing here reads a host clock, starts a thread, or depends on an address or on the
//! order of a hash table. The same seed and the same calls give the same trace hash.

#![forbid(unsafe_code)]

pub mod catalogue;
mod costs;
mod directory;
mod disk;
mod document;
mod fault_script;
mod link;
mod machine;
mod random;
mod setup;
mod trace;
mod world;

pub use costs::{COST_NS_MAX, CallerCost, Cost, CostError, CostOf, CostTable};
pub use directory::{MemoryTree, TreeOptions};
pub use disk::{
    Allocation, Disk, DiskFigures, DiskFileId, DiskOptions, DiskWait, Fault, FaultTarget, FaultWhat, FaultWindow,
    ForeignLoad, ForeignLoadId, OffsetSample, WriteFailures,
};
pub use fault_script::{FaultScript, ScriptedFault, ScriptedWhat};
pub use link::{Closed, Link, LinkEnd, LinkError, LinkFigures, LinkOptions, serve_machine};
pub use machine::{Machine, Memory};
pub use random::Random;
pub use setup::{EQUAL_PARTS_POLICY, OWN_POLICY, POLICY_KNOBS, Setup, SetupError, policies};
pub use world::{
    CPUS_MAX, CpuOptions, CpuTime, CpuUsage, RunError, SimPlatform, Slice, TaskUsage, World, WorldOptions,
};
