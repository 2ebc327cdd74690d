//! Renaming.
//!
//! Owns: the rules of a rename; the path up from a directory.
//! Does not own: the end of a replaced object (`held_nodes`, `remove`).
//! Invariants: no directory is below itself. The path up is checked under the order lock, which all renames take.

use afflux_volume::{AttributeChange, Change, Kind, New, RenameHow, Renamed, SpecialKind, Timestamp, VolumeError};

use super::edit::Edit;
use super::make::new_inode;
use super::permission;
use super::read::{ReadView, Used};
use super::remove::{check_empty, check_kind};
use super::state::{ObjectTree, Order};
use crate::error::DAMAGED;
use crate::format::records::Body;
use crate::format::tree::{Content, InodeRecord, ROOT};
use crate::tree::state::DataCore;

/// Most directories above each other that the path up passes. More are a circle in damaged records.
const DEPTH_MAX: usize = 1 << 20;

/// A name in a directory that a call read.
struct NamedEntry<'a> {
    directory: &'a Used,
    name: &'a [u8],
    parent: ReadView,
    /// The object of the name.
    object: Option<ReadView>,
}

impl NamedEntry<'_> {
    fn is_object(&self, other: &ReadView) -> bool {
        self.object.as_ref().is_some_and(|view| view.slot.ino == other.slot.ino)
    }
}

/// The outcome of a try.
enum Tried {
    Renamed(Box<Renamed>),
    /// A directory changed since it was read.
    Changed,
    /// This directory is on the path up and was not read.
    Unread(u64),
}

impl<D: DataCore> ObjectTree<D> {
    pub(super) async fn rename(
        &self,
        from: &Used,
        from_name: &[u8],
        to: &Used,
        to_name: &[u8],
        how: RenameHow,
        durable: bool,
    ) -> Result<Renamed, VolumeError> {
        loop {
            let from = self.named_entry(from, from_name).await?;
            let to = self.named_entry(to, to_name).await?;
            // Views hold their slots in memory.
            let mut above = Vec::new();
            loop {
                match self.try_rename(&from, &to, how, durable)? {
                    Tried::Renamed(renamed) => return Ok(*renamed),
                    Tried::Changed => break,
                    Tried::Unread(ino) => above.push(self.view(ino).await?.ok_or(DAMAGED)?),
                }
            }
        }
    }

    async fn named_entry<'a>(&self, directory: &'a Used, name: &'a [u8]) -> Result<NamedEntry<'a>, VolumeError> {
        loop {
            let (parent, _) = self.directory(directory).await?;
            permission::check_search(parent.current().owned(), directory.user())?;
            let Some(entry) = self.entry(directory.ino(), name).await? else {
                return Ok(NamedEntry { directory, name, parent, object: None });
            };
            let object = self.view(entry.ino).await?;
            if object.is_some() {
                return Ok(NamedEntry { directory, name, parent, object });
            }
            if parent.unchanged().is_some() {
                return Err(DAMAGED);
            }
        }
    }

    fn try_rename(
        &self,
        from: &NamedEntry<'_>,
        to: &NamedEntry<'_>,
        how: RenameHow,
        durable: bool,
    ) -> Result<Tried, VolumeError> {
        let mut order = self.order();
        let (Some(from_inode), Some(to_inode)) = (from.parent.unchanged(), to.parent.unchanged()) else {
            return Ok(Tried::Changed);
        };
        let moved_view = from.object.as_ref().ok_or(VolumeError::NotFound)?;
        let (moved, user) = (moved_view.current(), from.directory.user());
        let is_one = from.directory.ino() == to.directory.ino();
        let exchanged = to.object.as_ref().filter(|_| how == RenameHow::Exchange);
        match (how, &to.object) {
            (RenameHow::NoReplace | RenameHow::Whiteout { may_replace: false }, Some(_)) => {
                return Err(VolumeError::Exists);
            }
            (RenameHow::Exchange, None) => return Err(VolumeError::NotFound),
            _ => (),
        }
        let back = exchanged.map(|other| (other, from));
        for (view, into) in [(moved_view, to)].into_iter().chain(back) {
            if view.current().kind() == Kind::Directory && !is_one {
                match self.find_above(view.slot.ino, into.directory.ino())? {
                    Ok(true) => {
                        return Err(VolumeError::Invalid { what: "a directory cannot be moved into itself" });
                    }
                    Ok(false) => (),
                    Err(unread) => return Ok(Tried::Unread(unread)),
                }
            }
        }
        if let Some(replaced) = to.object.as_ref().filter(|_| exchanged.is_none() && !is_one)
            && replaced.current().kind() == Kind::Directory
        {
            // It has the moved object in it, at any depth.
            match self.find_above(replaced.slot.ino, from.directory.ino())? {
                Ok(true) => return Err(VolumeError::NotEmpty),
                Ok(false) => (),
                Err(unread) => return Ok(Tried::Unread(unread)),
            }
        }
        if to.is_object(moved_view) {
            return Ok(Tried::Renamed(Box::new(self.unmoved(&mut order, from, to, moved_view, durable))));
        }
        permission::check_unname(from_inode.owned(), moved.owned(), user)?;
        match &to.object {
            Some(replaced) => {
                let replaced = replaced.current();
                permission::check_unname(to_inode.owned(), replaced.owned(), user)?;
                if exchanged.is_none() {
                    check_kind(&replaced, moved.kind() == Kind::Directory)?;
                }
            }
            None => permission::check_change_entries(to_inode.owned(), user)?,
        }
        if !is_one {
            permission::check_change_parent(moved.owned(), user)?;
            if let Some(other) = exchanged {
                permission::check_change_parent(other.current().owned(), user)?;
            }
        }
        if let Some(replaced) = to.object.as_ref().filter(|_| exchanged.is_none()) {
            check_empty(&replaced.current())?;
        }
        let renamed = match exchanged {
            Some(other) => self.exchange_now(&mut order, from, moved_view, to, other, durable)?,
            None => self.move_now(&mut order, from, to, moved_view, how, durable)?,
        };
        Ok(Tried::Renamed(Box::new(renamed)))
    }

    /// Whether a directory is another one or above it; or a directory on the path up that was not read.
    fn find_above(&self, ino: u64, below: u64) -> Result<Result<bool, u64>, VolumeError> {
        let mut at = below;
        for _ in 0..DEPTH_MAX {
            if at == ino || at == ROOT {
                return Ok(Ok(at == ino));
            }
            match self.cache.slot(at).inode().map(|inode| inode.content) {
                Some(Content::Directory { parent, .. }) => at = parent,
                Some(_) => return Err(DAMAGED),
                None => return Ok(Err(at)),
            }
        }
        Err(DAMAGED)
    }

    /// Both names are of one object: both stay.
    fn unmoved(
        &self,
        order: &mut Order,
        from: &NamedEntry<'_>,
        to: &NamedEntry<'_>,
        view: &ReadView,
        durable: bool,
    ) -> Renamed {
        let same = |named_entry: &NamedEntry<'_>| {
            let stat = self.stat_of_view(&named_entry.parent);
            Change { before: stat, after: stat }
        };
        let moved = (self.identity(view.slot.ino), self.stat_of_view(view));
        let stable = self.stable(order.last, durable);
        Renamed { moved, replaced: None, from: same(from), to: same(to), stable }
    }

    fn move_now(
        &self,
        order: &mut Order,
        from: &NamedEntry<'_>,
        to: &NamedEntry<'_>,
        moved_view: &ReadView,
        how: RenameHow,
        durable: bool,
    ) -> Result<Renamed, VolumeError> {
        let (now, ino, mut edit) = (self.now(), moved_view.slot.ino, Edit::default());
        let mut moved = moved_view.current();
        moved.touch(now, &moved_view.body);
        if let Content::Directory { parent, .. } = &mut moved.content {
            *parent = to.directory.ino();
        }
        let lost = if how.has_old_name() {
            self.leave_whiteout(order, &mut edit, from, now)?;
            0
        } else {
            edit.remove_name(from.directory.ino(), from.name);
            -1
        };
        edit.name(to.directory.ino(), to.name, ino, &moved);
        let replaced = to.object.as_ref().map(|view| {
            let inode = edit.unlink(view, view.current(), now);
            (self.identity(view.slot.ino), self.stat_of(view.slot.ino, &inode, view.body))
        });
        let gained = if to.object.is_some() { 0 } else { 1 };
        let (from_change, to_change) = self.both_changed(&mut edit, from, lost, to, gained, now);
        let moved_stat = self.stat_of(ino, &moved, moved_view.body);
        edit.inode(&moved_view.slot, moved);
        let sequence = self.apply(order, edit)?;
        let stable = self.stable(sequence, durable);
        let moved = (self.identity(ino), moved_stat);
        Ok(Renamed { moved, replaced, from: from_change, to: to_change, stable })
    }

    /// Puts a whiteout at the old name.
    fn leave_whiteout(
        &self,
        order: &mut Order,
        edit: &mut Edit,
        from: &NamedEntry<'_>,
        now: Timestamp,
    ) -> Result<(), VolumeError> {
        let (ino, directory) = (self.next_ino(order)?, from.directory);
        let new = New::Special(SpecialKind::CharDevice { major: 0, minor: 0 });
        let wanted = AttributeChange { mode: Some(0), ..AttributeChange::default() };
        let whiteout = new_inode(&from.parent.current(), directory.ino(), directory.user(), new, &wanted, now);
        edit.name(directory.ino(), from.name, ino, &whiteout);
        edit.inode(&self.cache.slot(ino), whiteout);
        edit.count_files(1);
        Ok(())
    }

    /// Two names swap their objects.
    fn exchange_now(
        &self,
        order: &mut Order,
        from: &NamedEntry<'_>,
        moved: &ReadView,
        to: &NamedEntry<'_>,
        other: &ReadView,
        durable: bool,
    ) -> Result<Renamed, VolumeError> {
        let (now, mut edit) = (self.now(), Edit::default());
        let mut put = |view: &ReadView, into: &NamedEntry<'_>| {
            let (ino, mut inode) = (view.slot.ino, view.current());
            inode.touch(now, &view.body);
            if let Content::Directory { parent, .. } = &mut inode.content {
                *parent = into.directory.ino();
            }
            edit.name(into.directory.ino(), into.name, ino, &inode);
            let stat = self.stat_of(ino, &inode, view.body);
            edit.inode(&view.slot, inode);
            (self.identity(ino), stat)
        };
        let (moved, replaced) = (put(moved, to), put(other, from));
        let (from_change, to_change) = self.both_changed(&mut edit, from, 0, to, 0, now);
        let sequence = self.apply(order, edit)?;
        let stable = self.stable(sequence, durable);
        Ok(Renamed { moved, replaced: Some(replaced), from: from_change, to: to_change, stable })
    }

    /// Changes the directories of a rename, with the entries that each gains.
    fn both_changed(
        &self,
        edit: &mut Edit,
        from: &NamedEntry<'_>,
        from_gains: i64,
        to: &NamedEntry<'_>,
        to_gains: i64,
        now: Timestamp,
    ) -> (Change, Change) {
        let mut change = |named_entry: &NamedEntry<'_>, by: i64| {
            let (mut inode, ino): (InodeRecord, u64) = (named_entry.parent.current(), named_entry.directory.ino());
            let before = self.stat_of(ino, &inode, Body::default());
            inode.entries_changed(now, by);
            let after = self.stat_of(ino, &inode, Body::default());
            edit.inode(&named_entry.parent.slot, inode);
            Change { before, after }
        };
        if from.directory.ino() == to.directory.ino() {
            let change = change(from, from_gains + to_gains);
            return (change, change);
        }
        (change(from, from_gains), change(to, to_gains))
    }
}
