//! The deterministic world, in which the engine runs in virtual time on disks described by a few numbers.
//!
//! Owns: the virtual-time executor (`world`), CPU costs (`costs`), the simulated disk with its faults (`disk`,
//! `fault_script`), the catalogue of devices (`catalogue`), links (`link`), names in memory (`directory`), machines of
//! these (`machine`, `setup`), an object store (`object_store`).
//! Does not own: the engine, which is the same code that runs on real disks; workloads and their figures (the crate
//! `workloads`); the search for faults (`checker`).
//! Invariants: nothing here reads a host clock, starts a thread, or depends on an address or on the
//! order of a hash table. The same seed and the same calls give the same trace hash.

#![forbid(unsafe_code)]

pub mod catalogue;
mod costs;
mod directory;
mod disk;
mod document;
mod fault_script;
mod host_programs;
mod link;
mod machine;
mod object_store;
mod random;
mod setup;
mod trace;
mod world;

pub use afflux_budget::OWN_POLICY;
pub use afflux_engine::policy::EQUAL_PARTS_POLICY;
pub use costs::{COST_NS_MAX, CallerCost, Cost, CostOf, CostTable};
pub use directory::{MemoryTree, TreeOptions};
pub use disk::{
    Allocation, Disk, DiskFigures, DiskFileId, DiskFiles, DiskOptions, DiskWait, Fault, FaultTarget, FaultWhat,
    FaultWindow, ForeignLoad, ForeignLoadId, OffsetSample, WriteFailures,
};
pub use fault_script::{FaultScript, ScriptedFault, ScriptedWhat};
pub use host_programs::{HostLockCall, HostPrograms};
pub use link::{Closed, Link, LinkEnd, LinkError, LinkFigures, LinkOptions, serve_machine};
pub use machine::{Memory, SimMachine};
pub use object_store::{ObjectContents, ObjectRecords, ObjectStore, StoreFaults, StoreFigures, StoreOptions};
pub use random::Random;
pub use setup::{POLICY_KNOBS, Setup, SetupError, policies};
pub use world::{
    CPUS_MAX, CpuOptions, CpuTime, CpuUsage, RunError, RunOrder, SimPlatform, Slice, TaskUsage, World, WorldOptions,
};
