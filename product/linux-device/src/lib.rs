//! The real world below a cache, Linux: clocks, threads and host files for the engine.
//!
//! Owns: the `Platform` of real machines, its reactors and worker pools, devices over host files; the kinds of file
//! systems.
//! Does not own: which pages are cached or written when (the engine), names, protocols; host directories, sockets and
//! mounts (`afflux_linux_server`, for which the public modules are).
//! Invariants: nothing here decides anything about pages; `unsafe` stays in the ring and in the few
//! calls that hand memory to the kernel.

mod claim;
pub mod clock;
mod device;
mod foreign_wakers;
mod host_memory;
pub mod in_place;
pub mod kinds;
mod local;
pub mod plain_user;
mod platform;
pub mod pool;
mod process_word;
pub mod reactor;
pub mod reopen;
pub mod shortage;
#[cfg(test)]
mod tests;
mod watch;

pub use claim::{FileClaim, claim, unclaim};
pub use device::{Caching, HostDevice, HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors};
pub use foreign_wakers::{DeferredWakes, contain};
pub use host_memory::HostMemory;
pub use kinds::{file_system_kind, stores_files};
pub use platform::{IoChoice, LinuxPlatform, OnPanic, REACTORS_MAX, Reactors, RetainedReactor, StartError, WaitInside};
pub use pool::WorkerPool;
pub use process_word::ProcessWord;
