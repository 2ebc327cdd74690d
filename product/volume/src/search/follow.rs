//! From an identity to its object along remembered locations.
//!
//! Owns: the way down from an ancestor in memory, and its length.
//! Does not own: locations (`known_locations`), the next step if no location leads to the object (`walk`).
//! Invariants: an object found by a location is used only if it has the wanted identity. A name counts
//! as gone only if the host says so. The caller gets any other error.

use std::sync::Arc;

use afflux_engine::Platform;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::tree::identity::Identity;
use crate::tree::location::Location;
use crate::volume::Volume;

/// Most names between an object and its export's root. Each costs a lookup, and for a walk a descriptor.
pub(super) const DEPTH_MAX: usize = 4096;

/// The result of following remembered locations.
pub(super) enum Followed<P: Platform> {
    /// To the object.
    Found(Arc<Inode<P>>),
    /// There are none.
    Unknown,
    /// Another object is there, or nothing: ours was moved or removed since.
    Misled,
    /// The host could not tell.
    Failed(VolumeError),
}

impl<P: Platform> From<VolumeError> for Followed<P> {
    /// The meaning of an error on the way. Behind a directory that may not be searched the object is found by no name,
    /// but it may have moved elsewhere.
    fn from(error: VolumeError) -> Self {
        match error {
            VolumeError::NotFound | VolumeError::NotDirectory | VolumeError::Stale => Self::Misled,
            VolumeError::Denied | VolumeError::NotPermitted => Self::Misled,
            error => Self::Failed(error),
        }
    }
}

impl<P: Platform> Volume<P> {
    /// Goes down from a known ancestor along remembered locations.
    pub(super) async fn follow(&self, identity: Identity, export: u16) -> Followed<P> {
        let mut path = Vec::new();
        let mut at = identity;
        let mut inode = loop {
            if let Some(inode) = self.table.get(&at) {
                break inode;
            }
            let Some(location) = self.search.known.location(&at) else {
                return if path.is_empty() { Followed::Unknown } else { Followed::Misled };
            };
            if path.len() == DEPTH_MAX {
                return Followed::Misled;
            }
            path.push((at, location.name));
            at = location.parent;
        };
        while let Some((expected, name)) = path.pop() {
            let found = match self.tree.lookup(&inode.node, name.clone()).await {
                Ok(found) => found,
                Err(error) => return error.into(),
            };
            if found.identity != expected {
                return Followed::Misled;
            }
            let location = Location { parent: inode.identity, name };
            match self.admit(found, export, Some(location)).await {
                Ok(admitted) => inode = admitted,
                Err(error) => return error.into(),
            }
        }
        Followed::Found(inode)
    }
}
