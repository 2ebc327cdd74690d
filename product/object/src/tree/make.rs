//! Making objects, giving them further names, setting attributes.
//!
//! Owns: the rules of these calls.
//! Does not own: rights (`permission`), batches (`edit`).
//! Invariants: a batch is built on entries that still hold. If the directory changed, the call reads them again.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Change, ChangedAttributes, Created, Kind, Linked, New, OpenedData, SetTime, SpecialKind, Stat,
    Timestamp, Unnamed, VolumeError,
};
use bytes::Bytes;

use super::acl;
use super::edit::Edit;
use super::permission;
use super::read::{ReadView, Used};
use super::state::ObjectTree;
use super::xattrs::remove_capability;
use crate::format::records::Body;
use crate::format::tree::{Content, InodeRecord};
use crate::seams::RecordDatabase;
use crate::tree::state::DataCore;

const SIZE_GIVEN: VolumeError = VolumeError::Invalid { what: "a size: the engine sets sizes" };

fn content_of(new: New, parent: u64) -> Content {
    match new {
        New::Regular => Content::Regular,
        New::Directory => Content::Directory { parent, entries: 0 },
        New::Symlink { target } => Content::Symlink(target),
        New::Special(SpecialKind::Fifo) => Content::Fifo,
        New::Special(SpecialKind::Socket) => Content::Socket,
        New::Special(SpecialKind::CharDevice { major, minor }) => Content::CharDevice { major, minor },
        New::Special(SpecialKind::BlockDevice { major, minor }) => Content::BlockDevice { major, minor },
    }
}

/// The time after a change.
fn time_of(change: SetTime, now: Timestamp, old: Timestamp) -> Timestamp {
    match change {
        SetTime::Keep => old,
        SetTime::ServerNow => now,
        SetTime::To(time) => time,
    }
}

/// A new object of a directory.
pub(super) fn new_inode(
    parent: &InodeRecord,
    parent_ino: u64,
    by: permission::User<'_>,
    new: New,
    wanted: &AttributeChange,
    now: Timestamp,
) -> InodeRecord {
    let default = parent.acls.default.as_ref();
    let wanted = &wanted.for_new(default.is_some());
    let content = content_of(new, parent_ino);
    let owned = permission::of_new(parent.owned(), by, content.kind(), wanted);
    let (mode, acls) = acl::of_new(default, content.kind(), owned.mode);
    InodeRecord {
        mode,
        links: 1,
        uid: owned.uid,
        gid: owned.gid,
        accessed: time_of(wanted.atime, now, now),
        modified: time_of(wanted.mtime, now, now),
        modified_set: now,
        changed: now,
        changes: 0,
        has_xattrs: false,
        acls,
        content,
    }
}

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn create(
        &self,
        directory: &Used,
        name: &[u8],
        new: New,
        wanted: AttributeChange,
        durable: bool,
    ) -> Result<Created, VolumeError> {
        if wanted.size.is_some() {
            return Err(SIZE_GIVEN);
        }
        loop {
            let (parent, _) = self.directory(directory).await?;
            permission::check_search(parent.current().owned(), directory.user())?;
            if self.entry(directory.ino(), name).await?.is_some() {
                return Err(VolumeError::Exists);
            }
            if let Some(created) = self.create_now(directory, &parent, name, &new, &wanted, durable)? {
                return Ok(created);
            }
        }
    }

    /// Makes an object, unless the directory changed since it was read.
    fn create_now(
        &self,
        directory: &Used,
        view: &ReadView,
        name: &[u8],
        new: &New,
        wanted: &AttributeChange,
        durable: bool,
    ) -> Result<Option<Created>, VolumeError> {
        let mut order = self.order();
        let Some(mut parent) = view.unchanged() else { return Ok(None) };
        permission::check_change_entries(parent.owned(), directory.user())?;
        let (now, parent_ino) = (self.now(), directory.ino());
        let inode = new_inode(&parent, parent_ino, directory.user(), new.clone(), wanted, now);
        permission::check_make(&inode.content, directory.user())?;
        let ino = self.next_ino(&mut order)?;
        let before = self.stat_of(parent_ino, &parent, Body::default());
        parent.entries_changed(now, 1);
        let after = self.stat_of(parent_ino, &parent, Body::default());
        let mut edit = Edit::default();
        edit.inode(&self.cache.slot(ino), inode.clone());
        edit.name(parent_ino, name, ino, &inode);
        edit.inode(&view.slot, parent);
        edit.count_files(1);
        let sequence = self.apply(&mut order, edit)?;
        if inode.kind() == Kind::Regular {
            self.core.begin_file(ino);
        }
        let held = self.held_nodes.hold(ino);
        drop(order);
        let data = (inode.kind() == Kind::Regular).then(|| self.core.backing(held.clone()));
        let found = self.found(held, &inode, Body::default());
        let data = data.map(|backing| OpenedData { backing, stat: found.stat, writable: true });
        let stable = self.stable(sequence, durable);
        Ok(Some(Created { found, data, parent: Change { before, after }, stable }))
    }

    /// Makes a file that gets its name later, if at all ([`Self::link`]).
    pub(super) async fn create_unnamed(
        &self,
        directory: &Used,
        wanted: &AttributeChange,
    ) -> Result<Unnamed, VolumeError> {
        if wanted.size.is_some() {
            return Err(SIZE_GIVEN);
        }
        let (parent, _) = self.directory(directory).await?;
        let mut order = self.order();
        let parent = parent.current();
        permission::check_change_entries(parent.owned(), directory.user())?;
        let inode = new_inode(&parent, directory.ino(), directory.user(), New::Regular, wanted, self.now());
        let inode = InodeRecord { links: 0, ..inode };
        let ino = self.next_ino(&mut order)?;
        let mut edit = Edit::default();
        edit.inode(&self.cache.slot(ino), inode.clone());
        edit.nameless(ino);
        // The reaper may see the mark at once.
        let held = self.held_nodes.hold_nameless(ino);
        self.apply(&mut order, edit)?;
        self.core.begin_file(ino);
        drop(order);
        let backing = self.core.backing(Arc::clone(&held));
        let found = self.found(held, &inode, Body::default());
        let data = OpenedData { backing, stat: found.stat, writable: true };
        Ok(Unnamed { found, data })
    }

    pub(super) async fn open_data(&self, used: &Used, must_write: bool) -> Result<OpenedData, VolumeError> {
        let view = self.held(used).await?;
        let writable = !self.core.records().is_read_only();
        if must_write && !writable {
            return Err(VolumeError::ReadOnly);
        }
        match view.inode.kind() {
            Kind::Regular => {
                let backing = self.core.backing(used.held.clone());
                Ok(OpenedData { backing, stat: self.stat_of_view(&view), writable })
            }
            Kind::Directory => Err(VolumeError::IsDirectory),
            Kind::Symlink => Err(VolumeError::Symlink),
            _ => Err(VolumeError::Invalid { what: "not a regular file" }),
        }
    }

    pub(super) async fn link(
        &self,
        used: &Used,
        directory: &Used,
        name: Bytes,
        durable: bool,
    ) -> Result<Linked, VolumeError> {
        loop {
            let (view, (parent, _)) = (self.held(used).await?, self.directory(directory).await?);
            permission::check_search(parent.current().owned(), directory.user())?;
            if self.entry(directory.ino(), &name).await?.is_some() {
                return Err(VolumeError::Exists);
            }
            if let Some(linked) = self.link_now(&view, directory, &parent, &name, durable)? {
                return Ok(linked);
            }
        }
    }

    fn link_now(
        &self,
        view: &ReadView,
        directory: &Used,
        parent_view: &ReadView,
        name: &[u8],
        durable: bool,
    ) -> Result<Option<Linked>, VolumeError> {
        let mut order = self.order();
        let (mut inode, Some(mut parent)) = (view.current(), parent_view.unchanged()) else { return Ok(None) };
        permission::check_link(inode.owned(), directory.user())?;
        permission::check_change_entries(parent.owned(), directory.user())?;
        match inode.links {
            _ if inode.kind() == Kind::Directory => return Err(VolumeError::NotPermitted),
            0 if !self.held_nodes.is_nameless(view.slot.ino) => return Err(VolumeError::Stale),
            u32::MAX => return Err(VolumeError::TooManyLinks),
            links => inode.links = links + 1,
        }
        let (now, parent_ino) = (self.now(), directory.ino());
        inode.touch(now, &view.body);
        let before = self.stat_of(parent_ino, &parent, Body::default());
        parent.entries_changed(now, 1);
        let after = self.stat_of(parent_ino, &parent, Body::default());
        let stat = self.stat_of(view.slot.ino, &inode, view.body);
        let mut edit = Edit::default();
        if inode.links == 1 {
            edit.first_name(view.slot.ino);
        }
        edit.name(parent_ino, name, view.slot.ino, &inode);
        edit.inode(&view.slot, inode);
        edit.inode(&parent_view.slot, parent);
        let sequence = self.apply(&mut order, edit)?;
        Ok(Some(Linked { stat, parent: Change { before, after }, stable: self.stable(sequence, durable) }))
    }

    pub(super) async fn set(
        &self,
        used: &Used,
        change: &AttributeChange,
        durable: bool,
    ) -> Result<ChangedAttributes, VolumeError> {
        if change.size.is_some() {
            return Err(SIZE_GIVEN);
        }
        let view = self.held(used).await?;
        let mut order = self.order();
        let mut inode = view.current();
        let before = self.stat_of(used.ino(), &inode, view.body);
        let owned = permission::changed(inode.owned(), used.user(), change)?;
        (inode.mode, inode.uid, inode.gid) = (owned.mode, owned.uid, owned.gid);
        let now = inode.touch(self.now(), &view.body);
        inode.accessed = time_of(change.atime, now, inode.accessed);
        if change.mtime != SetTime::Keep {
            (inode.modified, inode.modified_set) = (time_of(change.mtime, now, now), now);
        }
        let stat = self.stat_of(used.ino(), &inode, view.body);
        let (told, wanted) = (order.told, order.wanted);
        let mut edit = Edit::default();
        if (change.uid.is_some() || change.gid.is_some()) && inode.has_xattrs && inode.kind() != Kind::Directory {
            edit.record(remove_capability(used.ino()));
            view.slot.forget_xattr_bytes();
        }
        edit.inode(&view.slot, inode);
        self.apply(&mut order, edit)?;
        if (Stat { ctime: before.ctime, ..stat }) == before {
            // Earlier batches have all that the call sets. Its change time alone is worth no PUT, and goes with the
            // next one.
            (order.told, order.wanted) = (told, wanted);
        }
        if self.is_own_correction(used, change, durable) {
            order.wanted = wanted;
        }
        Ok(ChangedAttributes { stat, stable: self.stable(order.told, durable) })
    }

    /// Whether the server itself gives a written file the time that it reported to its clients. The store has a time of
    /// the same write. With `async_metadata` a caller's change looks the same.
    fn is_own_correction(&self, used: &Used, change: &AttributeChange, durable: bool) -> bool {
        let is_by_server = used.user().is_none() && !durable && !self.options.async_metadata;
        is_by_server && *change == AttributeChange { mtime: change.mtime, ..AttributeChange::default() }
    }
}
