//! Files with names over the engine: handles, attributes, directories, durability of names.
//!
//! Owns: a front end's view of the files: identity, attributes coherent with unwritten data, names.
//! Does not own: pages and writeback (the engine), protocols (front ends), the host's calls (the world's
//! [`Directory`]), connections and callers (`frontend`).
//! Invariants: imports run in one direction: `tree`, the seam below; `objects`, the state of objects; `volume`, the
//! parts in one; then the operations in `handles`, `names`, `data`, `coherence` and `locks`. Servers that may open no
//! handles use `search`: the other modules report objects to it, and see nothing else of it. Nothing outside the
//! exported directories is reachable. A handle names one object during the object's life, and nothing afterwards.
#![forbid(unsafe_code)]

mod coherence;
mod data;
mod delegations;
mod error;
mod handles;
mod knobs;
mod lock;
mod locks;
mod names;
mod objects;
mod own;
mod search;
mod task;
mod tree;
mod volume;

pub use afflux_engine::settings::{KnobId, WhichKnob};
pub use afflux_engine::{Client, FILE_BYTES_MAX, Nanos, PinnedPages, Platform, knobs};
pub use data::clones::{CLONE_BLOCK_BYTES, CloneSide};
pub use data::holes::Reserve;
pub use data::locking::AskedHost;
pub use data::read_write::{ReadBytes, ReadResult};
pub use delegations::{ChangeInProgress, DelegationCounts, DelegationHolder, Delegations};
pub use error::VolumeError;
pub use handles::adopt::AdoptedFiles;
pub use handles::hold::Held;
pub use knobs::{KNOBS, VolumeKnob};
pub use locks::{
    FILE_GROUP_LOCKS_MAX, FILE_LOCKS_MAX, GROUP_LOCKS_MAX, HeldBy, HolderId, HostLocks, HostQuestion, HostRefusal,
    LOCKS_MAX, Lock, LockFamily, LockHolder, LockMode, LockOwner, LockRefusal, LockWaker, Locks, Share, ShareRefusal,
    Span,
};
pub use names::entries::CreateHow;
pub use names::list::{DirectoryEntry, Listing};
pub use objects::found_files::found_identities;
pub use objects::handle::{FileHandle, HANDLE_BYTES_MAX, HandleKey, handle_hash};
pub use objects::inode::Inode;
pub use objects::listener::{ForeignChange, ForeignListener};
pub use objects::rights::Use;
pub use search::location_log::LocationStore;
pub use tree::acl_form;
pub use tree::attributes::{
    AttributeChange, Attributes, Consistency, DeviceKey, Kind, Outcome, SetTime, Stat, Timestamp, WccAttributes,
};
pub use tree::caller::{Before, Caller, ChangeNote, Changer, Credentials, PersistedChange};
pub use tree::directory::{
    ACCESS_ACL, Change, ChangedAttributes, Created, DEFAULT_ACL, DeviceFactory, Directory, Export, Found, Identified,
    Joint, Linked, MakeDevice, Named, New, NewDevice, Node, OpenedData, PathLimits, Removed, RenameHow, Renamed, Seek,
    Space, SpecialKind, Stable, Unnamed, XATTR_BYTES_MAX, XATTR_NAME_BYTES_MAX, XattrChange,
};
pub use tree::identity::{IDENTITY_BYTES_MAX, Identity};
pub use tree::listing::Window;
pub use tree::names::{MOUNT_PATH_BYTES_MAX, NAME_BYTES_MAX, TARGET_BYTES_MAX};
pub use tree::pending::{Called, TreeCall, TreeResult};
pub use volume::Volume;
