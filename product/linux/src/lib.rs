//! The real world, Linux: clocks, threads, sockets and files for the engine and its front ends.
//!
//! Owns: the `Platform` of real machines, its reactors, devices over host files, listeners.
//! Does not own: which pages are cached or written when (the engine), names (the volume),
//! protocols.
//! Invariants: nothing here decides anything about pages; `unsafe` stays in the ring and in the few
//! calls that hand memory to the kernel.

mod claim;
mod clock;
mod device;
mod filter;
mod foreign_wakers;
mod fuse;
mod host;
mod host_memory;
mod in_place;
mod local;
mod net;
mod platform;
mod pool;
mod process_word;
mod reactor;
mod reopen;
#[cfg(test)]
mod scratch;
mod users;
mod watch;

pub use claim::{Claim, claim, unclaim};
pub use device::{Caching, HostDevice, HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors};
pub use filter::refuse_foreign_calls;
pub use foreign_wakers::{DeferredWakes, contain};
pub use fuse::{FuseMount, FuseSession, MountError, MountPoint, OwnMounts, is_killed, process_of, unmount};
pub use host::{
    HostError, HostOptions, HostTree, KeyOrigin, connections_max, handle_key, host_device, host_devices, kept_places,
};
pub use host_memory::HostMemory;
pub use net::{
    Bound, CONNECTIONS_MAX, ListenError, Listener, PeerCounts, RefusedConnection, ServeCounts, ServeHandle,
    ServeLimits, peers_are_identified, serve,
};
pub use platform::{IoChoice, LinuxPlatform, OnPanic, REACTORS_MAX, Reactors, StartError, WaitInside};
pub use pool::WorkerPool;
pub use process_word::ProcessWord;
pub use users::{acts_as_others, give_up_privileges, groups_of};
