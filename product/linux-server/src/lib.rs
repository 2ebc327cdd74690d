//! The real world above a cache, Linux: what a server of files has and a program with a cache of its own does without.
//!
//! Owns: host directories as a volume's tree, listeners and connections, mounts of the host's kernel, memory that
//! outlives its process, the privileges of a server.
//! Does not own: clocks, threads, devices (`afflux_linux_device`); which pages are cached or written when (the engine),
//! names (the volume), protocols.
//! Invariants: nothing here decides anything about pages; `unsafe` stays in the few calls of the kernel that have no
//! safe form.

mod arena_file;
mod descriptor_store;
mod device_pools;
mod fuse;
mod host;
mod net;
mod system_calls;
mod user_groups;
mod users;

pub use arena_file::{ArenaContents, ArenaFile, ArenaFileError, ArenaWait, is_ending};
pub use descriptor_store::{DescriptorStore, NoStore};
pub use fuse::{
    FuseMount, FuseSession, MOUNT_DESCRIPTORS, MountError, MountFlags, MountMemory, MountTarget, OwnMounts,
    PersistedMount, SyncFlags, is_killed, is_over, process_of, remove_mount, rights_of, unmount,
};
pub use host::{
    ExportedDirectory, HostError, HostOptions, HostTree, KeyOrigin, OnFileSystem, RescueFile, UNNAMED_FILES_MAX,
    UnstoredFile, connections_max, handle_key, host_device, host_devices, host_path, open_location_file,
};
pub use net::{
    Bound, CONNECTIONS_MAX, ListenError, Listener, PeerCounts, RefusedConnection, ServeCounts, ServeHandle,
    ServeLimits, peers_are_identified, serve,
};
pub use system_calls::{CallsFor, RefusedCalls, check_needed_calls, refuse_foreign_calls};
pub use user_groups::UsersOfHost;
pub use users::{give_up_privileges, keep_right_to_unmount, may_act_as_others};
