//! Changes that an earlier process has carried out for the same call.
//!
//! Owns: the answer to a repetition; the note that the tree makes of a change.
//! Does not own: the memory of the earlier process (front ends), the changes (`entries`, `data`).
//! Invariants: a repetition counts as done only if its note says so; otherwise it is judged by its own outcome. A made
//! object is the caller's only if it is the noted one, has the name, and belongs to the caller. A change that is done
//! is not done again (`racing_over_kills`).
//!
//! Between the host's call and its note, a kill leaves a change that nobody knows of. The repetition of such a change
//! finds the name taken or gone, and says so: [`VolumeError::Exists`], [`VolumeError::NotFound`]. An exchange of two
//! names would be undone by its repetition. The repetition of a rename with a whiteout would put the whiteout in place
//! of the object. So the volume refuses a repetition whose object has the new name already: the object may have come
//! there by this call or by another one.

use std::sync::Arc;

use afflux_engine::Platform;

use super::entries::Made;
use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::tree::attributes::{Attributes, Consistency, Outcome};
use crate::tree::caller::{Before, Caller, ChangeNote};
use crate::tree::directory::{Node, RenameHow, Stable};
use crate::volume::Volume;

/// A directory and a name in it.
type Name<'a, P> = (&'a Arc<Inode<P>>, &'a [u8]);

/// Whether an object belongs to a caller. To root, and to the server, all do.
fn is_of(caller: &Caller, attributes: &Attributes) -> bool {
    caller.credentials().is_none_or(|user| user.is_root() || user.uid == attributes.uid)
}

impl<P: Platform> Volume<P> {
    /// The hash of the handle of the object with a name. Waits for the host unless the name is known.
    pub async fn handle_hash_of(&self, (directory, name): Name<'_, P>) -> Option<u64> {
        let found = match self.try_lookup(directory, name) {
            Some(found) => found,
            None => self.lookup(directory, name).await.ok()?,
        };
        Some(self.key.handle_hash(&found.0.identity))
    }

    /// The node of a directory for a caller's change of its names. The tree notes the change.
    pub(super) fn changed_by(&self, caller: &Caller, directory: &Inode<P>) -> Node {
        let node = directory.node.used_by(caller);
        let Some(change) = caller.change() else { return node };
        let (change, key) = (Arc::clone(change), self.key.clone());
        node.noting(ChangeNote::new(move |made| change.note_done(made.map_or(0, |object| key.handle_hash(object)))))
    }

    /// The answer to a change of these objects if an earlier process has carried it out. It is durable then.
    pub(crate) async fn done_before(
        &self,
        caller: &Caller,
        changed: &[&Arc<Inode<P>>],
    ) -> Option<Result<(), VolumeError>> {
        match caller.before() {
            Before::Done { .. } => Some(self.made_durable(changed, Stable::not_begun()).await),
            _ => None,
        }
    }

    /// As [`Volume::done_before`], for a rename.
    pub(super) async fn renamed_before(
        &self,
        caller: &Caller,
        from: &Arc<Inode<P>>,
        new: Name<'_, P>,
        how: RenameHow,
    ) -> Option<Result<(), VolumeError>> {
        match caller.before() {
            Before::Done { .. } => Some(self.made_durable(&[new.0, from], Stable::not_begun()).await),
            Before::Begun { object, .. } if how.has_old_name() && object != 0 => {
                (self.handle_hash_of(new).await == Some(object)).then_some(Err(VolumeError::Exists))
            }
            _ => None,
        }
    }

    /// The answer to a creation if an earlier process has carried it out. An object that is not the noted one, or not
    /// the caller's, conflicts as any other does. [`VolumeError::Stale`] if the noted one has lost the name.
    pub(super) async fn made_before(&self, caller: &Caller, (parent, name): Name<'_, P>) -> Option<Outcome<Made<P>>> {
        let Before::Done { object } = caller.before() else { return None };
        let result = match self.lookup_by(caller, parent, name).await {
            Ok((inode, attributes))
                if self.key.handle_hash(&inode.identity) == object && is_of(caller, &attributes) =>
            {
                self.made_durable(&[parent], Stable::not_begun()).await.map(|()| (inode, attributes))
            }
            Ok(_) => Err(VolumeError::Exists),
            Err(VolumeError::NotFound) => Err(VolumeError::Stale),
            Err(error) => Err(error),
        };
        Some(Outcome { result, consistency: Consistency::default() })
    }
}
