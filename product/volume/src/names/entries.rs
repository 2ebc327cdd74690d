//! Changing directories: making, removing, renaming and linking; files without a name.
//!
//! Owns: the order of steps of each change, the update of inodes when their names change.
//! Does not own: the host's calls (the tree), durability (`data::sync`), the end of files without a name
//! (`handles::hold`).
//! Invariants: changes of one directory are made one at a time, so before and after are its own. While a directory is
//! locked, no other object is checked or locked, except for the second one of a rename. An object that lost its last
//! name stays usable to its holders. A file without a name has a holder from its creation on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Platform;
use afflux_engine::counters::Counter;
use bytes::Bytes;

use crate::error::VolumeError;
use crate::handles::hold::Held;
use crate::locks::Share;
use crate::objects::inode::Inode;
use crate::objects::inode_state::Times;
use crate::objects::rights::Use;
use crate::tree::attributes::{AttributeChange, Attributes, Consistency, Kind, Outcome, SetTime, Stat, Timestamp};
use crate::tree::caller::Caller;
use crate::tree::directory::{
    Change, Created, Linked, Location, New, Removed, RenameHow, Renamed, SpecialKind, Unnamed,
};
use crate::tree::identity::Identity;
use crate::tree::listing::KnownListing;
use crate::tree::names;
use crate::volume::{STOPPED, Volume};

/// How a regular file is made if its name may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreateHow {
    /// An existing regular file will do; of the attributes only a size acts on it.
    Unchecked(AttributeChange),
    /// The name must be free.
    Guarded(AttributeChange),
    /// The name must be free, or the file must be the caller's, made with the same verifier and unchanged since. So a
    /// repeated call succeeds, also after a restart. The verifier is stored in the file's access and modification
    /// times; the client is expected to set the times afterwards.
    Exclusive {
        /// The client's choice for this call.
        verifier: [u8; 8],
        /// What a new file gets in addition to the times. The mode is 0o600 if there is none.
        attributes: AttributeChange,
    },
}

/// The times that store a verifier. Some file systems store 31 bits of seconds, so the highest bit of each half is in
/// the nanoseconds, as 1 or 2.
fn verifier_times(verifier: [u8; 8]) -> (Timestamp, Timestamp) {
    let [a, b, c, d, e, f, g, h] = verifier;
    let time = |bytes| {
        let half = u32::from_be_bytes(bytes);
        Timestamp { seconds: i64::from(half & 0x7fff_ffff), nanos: 1 + (half >> 31) }
    };
    (time([a, b, c, d]), time([e, f, g, h]))
}

/// Whether a file still has the time of a verifier; only the seconds count if its file system has nothing finer.
fn has_times(found: Timestamp, given: Timestamp) -> bool {
    found.seconds == given.seconds && (found.nanos == given.nanos || found.nanos == 0)
}

impl CreateHow {
    fn attributes(&self) -> AttributeChange {
        match *self {
            Self::Unchecked(change) | Self::Guarded(change) => change,
            Self::Exclusive { verifier, attributes } => {
                let (atime, mtime) = verifier_times(verifier);
                let (atime, mtime) = (SetTime::To(atime), SetTime::To(mtime));
                AttributeChange { mode: attributes.mode.or(Some(0o600)), atime, mtime, ..attributes }
            }
        }
    }
}

pub(crate) type Made<P> = (Arc<Inode<P>>, Attributes);

impl<P: Platform> Volume<P> {
    /// Makes a regular file, or finds it if `how` allows. Its name is durable on return. The consistency is the
    /// directory's.
    pub async fn create_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        how: CreateHow,
    ) -> Outcome<Made<P>> {
        let (parent, name) = (Arc::clone(directory), Bytes::copy_from_slice(name));
        let caller = caller.clone();
        let work = |volume: Arc<Self>| async move { volume.create_now(&caller, &parent, name, how).await };
        self.carried_through("create", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn create_now(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        name: Bytes,
        how: CreateHow,
    ) -> Outcome<Made<P>> {
        let change = how.attributes();
        let made = self.make(caller, parent, name.clone(), New::Regular, change).await;
        match (&made.result, how) {
            (Ok((inode, _)), _) if change.size.is_some_and(|size| size > 0) => {
                let size = AttributeChange { size: change.size, ..AttributeChange::default() };
                let sized = match self.begin_change(caller, inode).await {
                    Ok(_begun) => self.set_attributes_now(caller, inode, size, None).await.result,
                    Err(error) => Err(error),
                };
                let result = sized.map(|()| (Arc::clone(inode), inode.attributes()));
                Outcome { result, ..made }
            }
            (Err(VolumeError::Exists), CreateHow::Unchecked(_)) => {
                Outcome { result: self.existing_file(caller, parent, &name, change.size).await, ..made }
            }
            (Err(VolumeError::Exists), CreateHow::Exclusive { verifier, .. }) => {
                Outcome { result: self.existing_own_file(caller, parent, &name, verifier).await, ..made }
            }
            _ => made,
        }
    }

    /// The existing file of an unchecked creation.
    async fn existing_file(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        name: &[u8],
        size: Option<u64>,
    ) -> Result<Made<P>, VolumeError> {
        let (inode, attributes) = self.lookup_by(caller, parent, name).await?;
        if inode.kind() != Kind::Regular {
            return Err(VolumeError::Exists);
        }
        if size.is_none() {
            return Ok((inode, attributes));
        }
        self.check_undenied(&inode, Share::WRITE)?;
        let _begun = self.begin_change(caller, &inode).await?;
        let change = AttributeChange { size, ..AttributeChange::default() };
        self.set_attributes_now(caller, &inode, change, None).await.result?;
        let attributes = inode.attributes();
        Ok((inode, attributes))
    }

    /// The existing file of an exclusive creation, if the same call made it. The times alone do not prove that:
    /// everybody who sees a file's times can name the verifier that they store.
    async fn existing_own_file(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        name: &[u8],
        verifier: [u8; 8],
    ) -> Result<Made<P>, VolumeError> {
        let (inode, attributes) = self.lookup_by(caller, parent, name).await?;
        let (atime, mtime) = verifier_times(verifier);
        let same = has_times(attributes.atime, atime) && has_times(attributes.mtime, mtime);
        let is_own = caller.credentials().is_none_or(|user| user.uid == attributes.uid);
        if inode.kind() == Kind::Regular && same && is_own { Ok((inode, attributes)) } else { Err(VolumeError::Exists) }
    }

    /// Makes a directory; durable on return. The consistency is the parent's.
    pub async fn make_directory_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        self.make_carried(caller, directory, name, New::Directory, attributes).await
    }

    /// Makes a symbolic link to exactly `target`: 1 to 4,095 bytes, no NUL. Durable on return.
    pub async fn symlink_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        target: &[u8],
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        if let Err(error) = names::check_target(target) {
            return Outcome { result: Err(error), consistency: directory.unchanged() };
        }
        let target = Bytes::copy_from_slice(target);
        self.make_carried(caller, directory, name, New::Symlink { target }, attributes).await
    }

    /// Makes a pipe, a socket or, where the host allows it, a device. Durable on return.
    pub async fn make_special_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        kind: SpecialKind,
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        self.make_carried(caller, directory, name, New::Special(kind), attributes).await
    }

    async fn make_carried(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        new: New,
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        if attributes.size.is_some_and(|size| size > 0) {
            let error = VolumeError::Invalid { what: "a size of something that has no bytes" };
            return Outcome { result: Err(error), consistency: directory.unchanged() };
        }
        let (parent, name) = (Arc::clone(directory), Bytes::copy_from_slice(name));
        let caller = caller.clone();
        let work = |volume: Arc<Self>| async move { volume.make(&caller, &parent, name, new, attributes).await };
        self.carried_through("make", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn make(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
    ) -> Outcome<Made<P>> {
        let checked = self.check_change(caller).and_then(|()| check_entry_name(parent, &name));
        if let Err(error) = checked.and_then(|()| attributes.check()) {
            return Outcome { result: Err(error), consistency: parent.unchanged() };
        }
        if let Some(made) = self.made_before(caller, (parent, &name)).await {
            return made;
        }
        self.trim_inodes().await;
        let attributes = AttributeChange { size: None, ..attributes };
        let changing = parent.changing.lock().await;
        parent.changes.fetch_add(1, Ordering::Relaxed);
        let node = self.changed_by(caller, parent);
        let is_file = matches!(new, New::Regular);
        let created = self.tree.create(&node, name.clone(), new, attributes, self.are_names_durable()).await;
        let Created { found, data, parent: change, stable } = match created {
            Ok(created) => created,
            Err(error) => return self.not_changed(parent, error),
        };
        self.count_changes(u64::from(is_file));
        let consistency = self.entries_changed(parent, change);
        let inode = match self.inode_of(found, self.export_of(parent)) {
            Ok((inode, _)) => inode,
            Err(error) => {
                parent.listed().forget();
                return Outcome { result: Err(error), consistency };
            }
        };
        self.list_change(parent, |listing| listing.insert(&name, inode.fileid()));
        self.search.note_found(&inode.identity);
        self.search.found_at(&inode, Location { parent: parent.identity, name: name.clone() });
        let attached = match data {
            Some(data) => self.attach_made(&inode, data).await,
            None => Ok(()),
        };
        drop(changing);
        self.tell_name(caller, parent, &name, &[]);
        let result = match attached {
            Ok(()) => self.made_durable(&[parent], stable).await,
            Err(error) => Err(error),
        };
        Outcome { result: result.map(|()| (Arc::clone(&inode), inode.attributes())), consistency }
    }

    /// Counts a change of a name, and whether it made a file.
    fn count_changes(&self, files: u64) {
        let local = self.engine.platform().local();
        local.count(Counter::NamesChanged, 1);
        local.count(Counter::FilesMade, files);
    }

    /// Removes a name of any object but a directory; durable on return. The object is freed with its last name, once it
    /// has no users here.
    pub async fn remove_by(&self, caller: &Caller, directory: &Arc<Inode<P>>, name: &[u8]) -> Outcome<()> {
        self.remove_carried(caller, directory, name, false).await
    }

    /// Removes an empty directory; durable on return.
    pub async fn remove_directory_by(&self, caller: &Caller, directory: &Arc<Inode<P>>, name: &[u8]) -> Outcome<()> {
        self.remove_carried(caller, directory, name, true).await
    }

    async fn remove_carried(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
        directory_wanted: bool,
    ) -> Outcome<()> {
        let begun = match self.begin_change_of_name(caller, directory, name).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: directory.unchanged() },
        };
        let (parent, name) = (Arc::clone(directory), Bytes::copy_from_slice(name));
        let caller = caller.clone();
        let work = move |volume: Arc<Self>| async move {
            let _begun = begun;
            let cached = volume.keep_before_removal(&parent, &name).await;
            let removed = volume.remove_now(&caller, &parent, name, directory_wanted).await;
            volume.removal_ended(cached).await;
            removed
        };
        self.carried_through("remove", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn remove_now(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        name: Bytes,
        directory_wanted: bool,
    ) -> Outcome<()> {
        let checked = match self.check_change(caller).and_then(|()| check_entry_name(parent, &name)) {
            // Without search permission the caller learns nothing about the entries, not even by an error.
            Ok(()) => self.permit(parent, caller, Use::Search).await,
            refused => refused,
        };
        if let Err(error) = checked {
            return Outcome { result: Err(error), consistency: parent.unchanged() };
        }
        if let Some(result) = self.done_before(caller, &[parent]).await {
            return Outcome { result, consistency: Consistency::default() };
        }
        let changing = parent.changing.lock().await;
        parent.changes.fetch_add(1, Ordering::Relaxed);
        let node = self.changed_by(caller, parent);
        let removed = self.tree.remove(&node, name.clone(), directory_wanted, self.are_names_durable()).await;
        let Removed { identity, stat, parent: change, stable } = match removed {
            Ok(removed) => removed,
            Err(error) => return self.not_changed(parent, error),
        };
        self.count_changes(0);
        let consistency = self.entries_changed(parent, change);
        self.list_change(parent, |listing| listing.remove(&name));
        self.name_taken(&identity, stat);
        drop(changing);
        self.keep_removed(&identity).await;
        self.tell_name(caller, parent, &name, &[identity]);
        Outcome { result: self.made_durable(&[parent], stable).await, consistency }
    }

    /// [`Volume::rename_how_by`] to a name whose object loses it.
    pub async fn rename_by(
        &self,
        caller: &Caller,
        from: &Arc<Inode<P>>,
        from_name: &[u8],
        to: &Arc<Inode<P>>,
        to_name: &[u8],
    ) -> (Outcome<()>, Consistency) {
        self.rename_how_by(caller, from, from_name, to, to_name, RenameHow::Replace).await
    }

    /// Renames an object, within a directory or into another one. An object that had the new name loses it, as by
    /// [`Volume::remove`], or `how` asks for something else. The handles and bytes of objects stay the same. Durable on
    /// return; a crash in between leaves all of it or nothing where the host's file system does so. The first
    /// consistency is that of the old name's directory, the second that of the new name's.
    pub async fn rename_how_by(
        &self,
        caller: &Caller,
        from: &Arc<Inode<P>>,
        from_name: &[u8],
        to: &Arc<Inode<P>>,
        to_name: &[u8],
        how: RenameHow,
    ) -> (Outcome<()>, Consistency) {
        let mut begun = Vec::new();
        for (directory, name) in [(from, from_name), (to, to_name)] {
            match self.begin_change_of_name(caller, directory, name).await {
                Ok(change) => begun.push(change),
                Err(error) => {
                    return (Outcome { result: Err(error), consistency: from.unchanged() }, to.unchanged());
                }
            }
        }
        let (from, from_name) = (Arc::clone(from), Bytes::copy_from_slice(from_name));
        let (to, to_name) = (Arc::clone(to), Bytes::copy_from_slice(to_name));
        let caller = caller.clone();
        let work = move |volume: Arc<Self>| async move {
            let _begun = begun;
            let cached = volume.keep_before_removal(&to, &to_name).await;
            let renamed = volume.rename_now(&caller, &from, from_name, &to, to_name, how).await;
            volume.removal_ended(cached).await;
            renamed
        };
        let stopped = || (Outcome::failed(STOPPED), Consistency::default());
        self.carried_through("rename", work).await.unwrap_or_else(stopped)
    }

    async fn rename_now(
        &self,
        caller: &Caller,
        from: &Arc<Inode<P>>,
        from_name: Bytes,
        to: &Arc<Inode<P>>,
        to_name: Bytes,
        how: RenameHow,
    ) -> (Outcome<()>, Consistency) {
        let checked = self.check_change(caller).and_then(|()| check_entry_name(from, &from_name));
        let mut checked = checked.and_then(|()| check_entry_name(to, &to_name));
        for directory in [from, to] {
            if checked.is_ok() {
                checked = self.permit(directory, caller, Use::Search).await;
            }
        }
        if let Err(error) = checked {
            return (Outcome { result: Err(error), consistency: from.unchanged() }, to.unchanged());
        }
        if let Some(result) = self.renamed_before(caller, from, (to, &to_name), how).await {
            return (Outcome { result, consistency: Consistency::default() }, Consistency::default());
        }
        let one = Arc::ptr_eq(from, to);
        let (first, second) = if from.identity <= to.identity { (from, to) } else { (to, from) };
        let first = first.changing.lock().await;
        let second = if one { None } else { Some(second.changing.lock().await) };
        from.changes.fetch_add(1, Ordering::Relaxed);
        to.changes.fetch_add(1, Ordering::Relaxed);
        let moving = self.search.begin_move(&from.identity, self.export_of(from)).await;
        let node = self.changed_by(caller, from);
        let (old, new) = ((&node, from_name.clone()), (&to.node, to_name.clone()));
        let renamed = self.tree.rename(old, new, how, self.are_names_durable()).await;
        let Renamed { moved, replaced, from: from_change, to: to_change, stable } = match renamed {
            Ok(renamed) => renamed,
            Err(error) => return (self.not_changed(from, error), to.unchanged()),
        };
        self.count_changes(0);
        let exchanged = replaced.filter(|_| how == RenameHow::Exchange);
        self.relocated(&moved, from, to, &to_name);
        if let Some(other) = &exchanged {
            self.relocated(other, to, from, &from_name);
        }
        drop(moving);
        let from_consistency = self.entries_changed(from, from_change);
        let to_consistency = if one { from_consistency } else { self.entries_changed(to, to_change) };
        let is_whiteout = matches!(how, RenameHow::Whiteout { .. });
        if is_whiteout || (replaced.is_none() && moved.1.kind != Kind::Directory && moved.1.links > 1) {
            // The tree made a whiteout, or both names may be of one object, and then both stay.
            from.listed().forget();
            to.listed().forget();
        } else {
            self.list_change(from, |listing| listing.remove(&from_name));
            self.list_moved(to, &to_name, &moved);
        }
        match (replaced, exchanged) {
            (_, Some(other)) => {
                self.list_moved(from, &from_name, &other);
                self.name_changed(&other.0, other.1);
            }
            (Some((identity, stat)), None) => self.name_taken(&identity, stat),
            (None, None) => {}
        }
        self.name_changed(&moved.0, moved.1);
        drop((first, second));
        if let Some((identity, _)) = &replaced {
            self.keep_removed(identity).await;
        }
        self.tell_name(caller, from, &from_name, &[moved.0]);
        self.tell_name(caller, to, &to_name, replaced.map(|(identity, _)| identity).as_slice());
        // The new name first: a crash in between leaves both names, never none.
        let directories = if one { &[to][..] } else { &[to, from] };
        let result = self.made_durable(directories, stable).await;
        (Outcome { result, consistency: from_consistency }, to_consistency)
    }

    /// Gives an object another name, or a file without a name its first; not possible for directories. An object that
    /// has lost its last name gets no other: [`VolumeError::Stale`]. Durable on return. The result is the object's
    /// attributes, the consistency the directory's.
    pub async fn link_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Outcome<Attributes> {
        let begun = match self.begin_change(caller, inode).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: directory.unchanged() },
        };
        let (target, parent) = (Arc::clone(inode), Arc::clone(directory));
        let name = Bytes::copy_from_slice(name);
        let caller = caller.clone();
        let work = |volume: Arc<Self>| async move {
            let _begun = begun;
            volume.link_now(&caller, &target, &parent, name).await
        };
        self.carried_through("link", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn link_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        parent: &Arc<Inode<P>>,
        name: Bytes,
    ) -> Outcome<Attributes> {
        let checked = self.check_change(caller).and_then(|()| check_entry_name(parent, &name)).and_then(|()| {
            match inode.kind() {
                Kind::Directory => Err(VolumeError::IsDirectory),
                // A held object does not end before the new name is recorded here.
                _ => self.hold(inode),
            }
        });
        let _held = match checked {
            Ok(held) => held,
            Err(error) => return Outcome { result: Err(error), consistency: parent.unchanged() },
        };
        if let Some(done) = self.done_before(caller, &[parent]).await {
            let attributes = self.attributes(inode).await;
            return Outcome { result: done.and(attributes), consistency: Consistency::default() };
        }
        let unnamed = inode.is_removed();
        let changing = parent.changing.lock().await;
        parent.changes.fetch_add(1, Ordering::Relaxed);
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let node = self.changed_by(caller, parent);
        let linked = self.tree.link(&inode.node, &node, name.clone(), self.are_names_durable()).await;
        let Linked { stat, parent: change, stable } = match linked {
            Ok(linked) => linked,
            Err(error) => {
                let Outcome { result, consistency } = self.not_changed::<()>(parent, error);
                return Outcome { result: result.map(|()| inode.attributes()), consistency };
            }
        };
        self.count_changes(0);
        let consistency = self.entries_changed(parent, change);
        self.list_change(parent, |listing| listing.insert(&name, inode.fileid()));
        let location = Location { parent: parent.identity, name: name.clone() };
        self.search.named(&self.table, &inode.identity, location);
        inode.changed(stat, self.now(), Times::Keep, None);
        if unnamed {
            inode.gain_name();
            self.search.note_found(&inode.identity);
        }
        drop(changing);
        if unnamed && self.tree.may_keep_unnamed() {
            let _ = self.tree.let_go_unnamed(&inode.node).await;
        }
        self.tell_name(caller, parent, &name, &[inode.identity]);
        let result = self.made_durable(&[parent], stable).await;
        Outcome { result: result.map(|()| inode.attributes()), consistency }
    }

    /// Updates a directory after a change of ours; returns both sides as clients should see them.
    fn entries_changed(&self, directory: &Arc<Inode<P>>, change: Change) -> Consistency {
        // If others changed it just before, our last answer is not the state before our change. Then the host's state
        // counts, and clients that compare notice the change.
        let others = {
            let state = directory.state();
            change.before.ctime != state.stat.ctime || change.before.mtime != state.stat.mtime
        };
        if others {
            self.tell_found(directory);
            directory.listed().forget();
            directory.forget_rights(&mut directory.state());
            directory.changed(change.before, self.now(), Times::Entries, None);
        }
        directory.changed(change.after, self.now(), Times::Entries, None)
    }

    /// Changes the cached listing of a directory by a name. Where the name may have been spelt otherwise, the listing
    /// is dropped.
    fn list_change(&self, directory: &Arc<Inode<P>>, change: impl FnOnce(&mut KnownListing)) {
        let mut listing = directory.listed();
        if self.may_fold_names(directory) { listing.forget() } else { change(&mut listing) }
    }

    /// Adds a renamed object to the cached listing of its new directory.
    fn list_moved(&self, directory: &Arc<Inode<P>>, name: &Bytes, (identity, stat): &(Identity, Stat)) {
        match self.file_ids.of(identity.fsid(), stat.fileid) {
            Ok(fileid) => self.list_change(directory, |listing| listing.insert(name, fileid)),
            Err(_) => directory.listed().forget(),
        }
    }

    /// Records a renamed object's new location.
    fn relocated(
        &self,
        (identity, stat): &(Identity, Stat),
        from: &Arc<Inode<P>>,
        parent: &Arc<Inode<P>>,
        name: &Bytes,
    ) {
        if stat.kind == Kind::Directory {
            self.search.carried(*identity, self.export_of(from), self.export_of(parent));
        }
        let location = Location { parent: parent.identity, name: name.clone() };
        self.search.named(&self.table, identity, location);
    }

    /// Updates an object after one of its names was removed.
    fn name_taken(&self, identity: &Identity, stat: Stat) {
        if stat.links > 0 {
            self.search.unnamed_once();
        }
        self.name_changed(identity, stat);
    }

    /// Updates an object after one of its names was changed or removed, if it is in memory.
    fn name_changed(&self, identity: &Identity, stat: Stat) {
        if stat.links == 0 {
            self.search.gone(identity);
        }
        let Some(inode) = self.table.get(identity) else {
            return;
        };
        inode.changed(stat, self.now(), Times::Keep, None);
        if stat.links == 0 {
            self.lose_name(&inode);
        }
    }

    fn not_changed<T>(&self, directory: &Arc<Inode<P>>, error: VolumeError) -> Outcome<T> {
        Outcome { result: Err(error), consistency: directory.unchanged() }
    }
}

fn check_entry_name<P: Platform>(directory: &Inode<P>, name: &[u8]) -> Result<(), VolumeError> {
    names::check_entry(name)?;
    check_directory(directory)
}

pub(super) fn check_directory<P: Platform>(directory: &Inode<P>) -> Result<(), VolumeError> {
    directory.require_directory()?;
    if directory.is_removed() { Err(VolumeError::Stale) } else { Ok(()) }
}

impl<P: Platform> Volume<P> {
    /// Makes an empty regular file without a name, on the file system of `directory`; the caller needs the right to
    /// make names there. [`Volume::link_by`] gives it a name later, and makes that durable. Without a name the file is
    /// not durable: it ends with its last holder, with the server, and in a crash. The attributes may not have a size.
    /// [`VolumeError::NotSupported`] if the host's file system has no such files.
    pub async fn create_unnamed_by(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        attributes: AttributeChange,
    ) -> Result<(Held<P>, Attributes), VolumeError> {
        let (caller, parent) = (caller.clone(), Arc::clone(directory));
        let work = |volume: Arc<Self>| async move { volume.create_unnamed_now(&caller, &parent, attributes).await };
        self.carried_through("create without a name", work).await.unwrap_or(Err(STOPPED))
    }

    async fn create_unnamed_now(
        &self,
        caller: &Caller,
        parent: &Arc<Inode<P>>,
        attributes: AttributeChange,
    ) -> Result<(Held<P>, Attributes), VolumeError> {
        self.check_change(caller)?;
        check_directory(parent)?;
        attributes.check()?;
        if attributes.size.is_some() {
            return Err(VolumeError::Invalid { what: "a size of a file without a name" });
        }
        self.trim_inodes().await;
        let Unnamed { found, data } = self.tree.create_unnamed(&parent.node.used_by(caller), attributes).await?;
        let (inode, _) = self.inode_of(found, self.export_of(parent))?;
        // Held before it has lost its name, so it does not end in between.
        let held = self.hold(&inode)?;
        self.lose_name(&inode);
        self.attach_made(&inode, data).await?;
        self.keep_unnamed(&inode).await;
        let attributes = inode.attributes();
        Ok((held, attributes))
    }
}
