//! The tree of names of a volume: directories, attributes, links.
//!
//! Owns: the calls of a volume on names (`directory`). Reads are in `read`, changes in `make`, `remove`,
//! `rename`, `xattrs` and `acl`, batches in `edit`, rights in `permission`. Inodes in memory are in `cache`, the end of
//! objects in `held_nodes` and `remove`.
//! Does not own: bytes of files (`state`), the records' database.
//! Invariants: one call is one batch, so a crash undoes whole calls, the last ones first. A call that must be durable
//! is answered after its batch is, and every call only while this writer may answer. An object with a name or a holder
//! is never reaped.

mod acl;
mod cache;
mod directory;
mod edit;
mod held_nodes;
mod make;
mod permission;
mod read;
mod remove;
mod rename;
mod state;
mod xattrs;

pub use held_nodes::HeldNode;
pub use state::{DataCore, ObjectTree, ObjectTreeOptions};
