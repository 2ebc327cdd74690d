//! FUSE (the kernel's `fuse_kernel.h`, protocol 7) as a pure protocol machine: messages in, segments out.
//!
//! Owns: the protocol, the kernel's nodes, open files, the calls that can be interrupted.
//! Does not own: the device, threads, mounting (worlds); files (the volume); permissions, which the kernel and the host
//! check (`default_permissions`).
//! Invariants: for any bytes, nothing panics and nothing grows beyond its bound. Each message that can be read and has
//! a reply is answered once.
//!
//! A [`Mount`] is the state of one mount. Worlds use it as a [`MessageMachine`]; [`MessageStream`] makes a
//! [`ProtocolMachine`] of it, for worlds that move streams.
//!
//! [`MessageMachine`]: afflux_frontend::MessageMachine
//! [`ProtocolMachine`]: afflux_frontend::ProtocolMachine

#![forbid(unsafe_code)]

mod abi;
mod answering;
mod calls;
mod interrupts;
mod limits;
mod mount;
mod mount_state;
mod nodes;
mod notices;
mod open_files;
mod operations;
mod reply;
mod request;
mod slots;

pub use afflux_frontend::PersistedWords;
pub use answering::MessageStream;
pub use limits::{CALLS_MAX, DATA_BYTES_MAX, MESSAGE_BYTES_MAX, NODES_MAX, OPEN_FILES_MAX};
pub use mount::{Mount, MountOptions, Requesters, SyncedChanges, ThreadRights};
pub use mount_state::{MountState, MountStateError, PERSISTED_WORDS, PERSISTED_WORDS_MIN};
