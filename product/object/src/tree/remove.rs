//! Removing names.
//!
//! Owns: the rules of a removal.
//! Does not own: the end of an object without a name (`holders`, `reaper`).
//! Invariants: a directory with entries keeps its name.

use afflux_volume::{Change, Removed, VolumeError};

use super::data_core::DataCore;
use super::edit::Edit;
use super::failure::DAMAGED;
use super::permission;
use super::read::{ReadView, Used};
use super::state::ObjectTree;
use crate::format::inode::InodeRecord;
use crate::format::records::Body;

/// Refuses to remove a directory where another object is wanted, and the reverse.
pub(super) fn check_kind(inode: &InodeRecord, directory_wanted: bool) -> Result<(), VolumeError> {
    match (inode.as_directory(), directory_wanted) {
        (Err(VolumeError::NotDirectory), false) | (Ok(_), true) => Ok(()),
        (Err(error), _) => Err(error),
        (Ok(_), false) => Err(VolumeError::IsDirectory),
    }
}

/// Refuses to remove a directory with entries.
pub(super) fn check_empty(inode: &InodeRecord) -> Result<(), VolumeError> {
    match inode.as_directory() {
        Ok((_, entries)) if entries > 0 => Err(VolumeError::NotEmpty),
        _ => Ok(()),
    }
}

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn remove(
        &self,
        directory: &Used,
        name: &[u8],
        directory_wanted: bool,
        durable: bool,
    ) -> Result<Removed, VolumeError> {
        loop {
            let (parent, _) = self.directory(directory).await?;
            permission::check_search(parent.current().owned(), directory.user())?;
            let entry = self.entry(directory.ino(), name).await?.ok_or(VolumeError::NotFound)?;
            match self.view(entry.ino).await? {
                Some(view) => {
                    let removed = self.remove_now(directory, &parent, name, &view, directory_wanted, durable)?;
                    if let Some(removed) = removed {
                        return Ok(removed);
                    }
                }
                None if parent.unchanged().is_some() => return Err(DAMAGED),
                None => (),
            }
        }
    }

    /// Removes a name, unless its directory changed since it was read.
    fn remove_now(
        &self,
        directory: &Used,
        parent_view: &ReadView,
        name: &[u8],
        view: &ReadView,
        directory_wanted: bool,
        durable: bool,
    ) -> Result<Option<Removed>, VolumeError> {
        let mut order = self.order();
        let (inode, Some(mut parent)) = (view.current(), parent_view.unchanged()) else { return Ok(None) };
        permission::check_unname(parent.owned(), inode.owned(), directory.user())?;
        check_kind(&inode, directory_wanted)?;
        check_empty(&inode)?;
        let (now, parent_ino, ino) = (self.now(), directory.ino(), view.slot.ino);
        let before = self.stat_of(parent_ino, &parent, Body::default());
        parent.entries_changed(now, -1);
        let after = self.stat_of(parent_ino, &parent, Body::default());
        let mut edit = Edit::default();
        edit.remove_name(parent_ino, name);
        edit.inode(&parent_view.slot, parent);
        let inode = edit.unlink(view, inode, now);
        let sequence = self.apply(&mut order, edit)?;
        let (identity, stat) = (self.identity(ino), self.stat_of(ino, &inode, view.body));
        let stable = self.stable(sequence, durable);
        Ok(Some(Removed { identity, stat, parent: Change { before, after }, stable }))
    }
}
