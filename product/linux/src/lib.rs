//! The real world, Linux: clocks, threads, sockets and files for the engine and its front ends.
//!
//! Owns: the `Platform` of real machines, its reactors, devices over host files. With the feature `server` also host
//! directories, listeners and mounts, which a program with a cache of its own does without.
//! Does not own: which pages are cached or written when (the engine), names (the volume),
//! protocols.
//! Invariants: nothing here decides anything about pages; `unsafe` stays in the ring and in the few
//! calls that hand memory to the kernel.

#![cfg_attr(
    not(feature = "server"),
    allow(dead_code, unused_imports, reason = "a reactor and a pool can more than a cache alone needs")
)]

#[cfg(feature = "server")]
mod arena_file;
mod claim;
mod clock;
#[cfg(feature = "server")]
mod descriptor_store;
mod device;
mod fence;
#[cfg(feature = "server")]
mod filter;
mod foreign_wakers;
#[cfg(feature = "server")]
mod fuse;
#[cfg(feature = "server")]
mod host;
mod host_memory;
mod in_place;
mod kinds;
mod local;
#[cfg(feature = "server")]
mod needed_calls;
#[cfg(feature = "server")]
mod net;
mod plain_user;
mod platform;
mod pool;
mod process_word;
mod reactor;
mod reopen;
#[cfg(test)]
mod scratch;
mod storing;
#[cfg(feature = "server")]
mod users;
mod watch;

#[cfg(feature = "server")]
pub use arena_file::{ArenaContents, ArenaFile, ArenaFileError, ArenaWait};
pub use claim::{FileClaim, claim, unclaim};
#[cfg(feature = "server")]
pub use descriptor_store::{DescriptorStore, NoStore};
pub use device::{Caching, HostDevice, HostFile, LentDescriptor, RevokedDescriptors, SpareDescriptors};
#[cfg(feature = "server")]
pub use filter::refuse_foreign_calls;
pub use foreign_wakers::{DeferredWakes, contain};
#[cfg(feature = "server")]
pub use fuse::{
    FuseMount, FuseSession, KeptMount, MOUNT_DESCRIPTORS, MountError, MountMemory, MountTarget, OwnMounts, is_killed,
    is_over, process_of, remove_mount, rights_of, unmount,
};
#[cfg(feature = "server")]
pub use host::{
    HostError, HostOptions, HostTree, KeyOrigin, RescueFile, UNNAMED_FILES_MAX, UnkeptFile, connections_max,
    handle_key, host_device, host_devices, kept_places,
};
pub use host_memory::HostMemory;
#[cfg(feature = "server")]
pub use needed_calls::{CallsFor, RefusedCalls, check_needed_calls};
#[cfg(feature = "server")]
pub use net::{
    Bound, CONNECTIONS_MAX, ListenError, Listener, PeerCounts, RefusedConnection, ServeCounts, ServeHandle,
    ServeLimits, peers_are_identified, serve,
};
pub use platform::{IoChoice, LinuxPlatform, OnPanic, REACTORS_MAX, Reactors, StartError, WaitInside};
pub use pool::WorkerPool;
pub use process_word::ProcessWord;
pub use storing::{file_system_kind, stores_files};
#[cfg(feature = "server")]
pub use users::{give_up_privileges, groups_of, keep_right_to_unmount, may_act_as_others};
