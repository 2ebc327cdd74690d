//! Files with names over the engine: handles, attributes, directories, durability of names.
//!
//! Owns: what a front end sees of the files: identity, attributes coherent with unwritten data, names.
//! Does not own: pages and writing back (the engine), protocols (front ends), the host's calls (the
//! world's [`Directory`]).
//! Invariants: nothing outside the exported directories is reachable; a handle names one object for as
//! long as that lives, and nothing afterwards.
#![forbid(unsafe_code)]

mod attributes;
mod data;
mod directory;
mod entries;
mod error;
mod handle;
mod inode;
mod list;
mod listing;
mod location;
pub mod machine;
mod name_cache;
pub mod names;
pub mod read;
mod resolve;
mod search;
mod settle;
mod sync;
mod table;
mod task;
mod tend;
mod usage;
mod volume;

pub use attributes::{AttributeChange, Attributes, Before, Consistency, Kind, Outcome, SetTime, Timestamp};
pub use data::{ReadBytes, ReadResult};
pub use directory::{
    Change, Created, Data, DeviceFactory, DeviceKey, Directory, Export, Found, Identified, Linked, New, NewDevice,
    Node, PathLimits, Pending, Removed, Renamed, Space, SpecialKind, Stat,
};
pub use engine::Platform;
pub use entries::CreateHow;
pub use error::VolumeError;
pub use handle::{FileHandle, HANDLE_BYTES_MAX, HandleKey, IDENTITY_BYTES_MAX, Identity};
pub use inode::Inode;
pub use list::{DirectoryEntry, Listing};
pub use listing::Window;
pub use machine::{Machine, Peer, ProtocolError, Segment};
pub use volume::Volume;
