//! From handles, names and mount paths to inodes.
//!
//! Owns: lookups, the ways from a handle back to an object, room in the table, the check of an idle
//! object against the host.
//! Does not own: the table (`table`), the layout of handles (`handle`), walks of the exports (`search`).
//! Invariants: an object that is gone is `Stale`, never `NotFound`. What a location leads to is used
//! only if its identity is the one looked for. An export is left by no name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::{Nanos, Platform};

use crate::attributes::{Attributes, Kind};
use crate::directory::Found;
use crate::error::VolumeError;
use crate::handle::{self, Identity};
use crate::inode::{Inode, Seen};
use crate::location::Location;
use crate::names;
use crate::search::DEPTH_MAX;
use crate::volume::{Volume, lock};

/// Most symbolic links on a mount path, as on the host's paths.
const LINKS_MAX: usize = 40;

/// Where remembered locations led to.
pub(crate) enum Followed<P: Platform> {
    /// To the object.
    Found(Arc<Inode<P>>),
    /// Nowhere: there are none.
    Unknown,
    /// To something else: it was moved or removed since.
    Misled,
}

impl<P: Platform> Volume<P> {
    /// The directory that a mount path names: "" and "/" are the export where there is one; with
    /// several the first name is the export's. Symbolic links are followed as if the export were all
    /// there is: their "/" is its root, and so is what ".." leads to there.
    pub async fn mount(&self, path: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
        let names = names::components(path)?;
        let mut names = names.as_slice();
        let export = match self.exports.as_slice() {
            [only] if only.path == "/" => only,
            several => {
                let (first, rest) = names.split_first().ok_or(VolumeError::NotFound)?;
                names = rest;
                let named = several.iter().find(|export| export.path.as_bytes()[1..] == **first);
                named.ok_or(VolumeError::NotFound)?
            }
        };
        let mut inode = Arc::clone(&export.root);
        let mut names: VecDeque<Bytes> = names.iter().map(|name| Bytes::copy_from_slice(name)).collect();
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            let found = self.lookup(&inode, &name).await?.0;
            if found.kind() != Kind::Symlink {
                inode = found;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(VolumeError::Symlink);
            }
            let (target, _) = self.read_link(&found).await?;
            if target.starts_with(b"/") {
                inode = Arc::clone(&export.root);
            }
            for name in names::components(&target)?.into_iter().rev() {
                names.push_front(target.slice_ref(name));
            }
        }
        if inode.kind() == Kind::Directory { Ok(inode) } else { Err(VolumeError::NotDirectory) }
    }

    /// The object of a handle, if it is in memory. Asks the host nothing.
    pub fn try_resolve(&self, handle: &[u8]) -> Option<Arc<Inode<P>>> {
        let (identity, _) = handle::peek(handle).ok()?;
        // The whole handle is compared, its hash with it: a forged one is never equal.
        let inode = self.table.get(&identity).filter(|inode| inode.handle.as_bytes() == handle);
        inode.filter(|inode| !self.may_be_outside(inode))
    }

    /// Whether the tree has to be asked if a file is still inside. Of directories it says so by itself.
    fn may_be_outside(&self, inode: &Inode<P>) -> bool {
        self.confines_files
            && inode.kind() != Kind::Directory
            && self.now().since(Nanos(inode.confined.load(Ordering::Relaxed))) >= self.idle_ns()
    }

    /// Asks the tree whether a file is still inside.
    async fn confine(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if !self.may_be_outside(inode) {
            return Ok(());
        }
        let now = self.now();
        match self.tree.stat(&inode.node).await {
            Ok(_) => inode.confined.store(now.0, Ordering::Relaxed),
            Err(error) => {
                // Under another of its names it may be inside: then it is to be found anew.
                self.table.drop_idle(inode, |_| {});
                return Err(error);
            }
        }
        Ok(())
    }

    /// The object of a handle. [`VolumeError::BadHandle`] if the handle was not given out by this
    /// server, [`VolumeError::Stale`] if the object is gone or its export is not served any more.
    pub async fn resolve(&self, handle: &[u8]) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.try_resolve(handle) {
            return Ok(inode);
        }
        let (identity, export) = self.key.open(handle)?;
        if !self.exports.iter().any(|served| served.tag == export) {
            return Err(VolumeError::Stale);
        }
        let inode = self.resolve_identity(identity, export).await?;
        self.confine(&inode).await?;
        Ok(inode)
    }

    async fn resolve_identity(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.table.get(&identity) {
            return Ok(inode);
        }
        self.make_room().await;
        if self.tree.opens(&identity) {
            match self.tree.open_identity(identity).await {
                Ok(found) => return self.admit(found, export, None).await,
                Err(VolumeError::NotSupported) => {}
                Err(error) => return Err(gone(error)),
            }
        } else if lock(&self.searches).is_gone(&identity) {
            return Err(VolumeError::Stale);
        }
        if let Followed::Found(inode) = self.follow(identity, export).await {
            return Ok(inode);
        }
        self.search(identity, export).await
    }

    /// Goes down from a known ancestor along remembered locations.
    pub(crate) async fn follow(&self, identity: Identity, export: u16) -> Followed<P> {
        let mut path = Vec::new();
        let mut at = identity;
        let mut inode = loop {
            if let Some(inode) = self.table.get(&at) {
                break inode;
            }
            let Some(location) = lock(&self.locations).get(&at).cloned() else {
                return if path.is_empty() { Followed::Unknown } else { Followed::Misled };
            };
            if path.len() == DEPTH_MAX {
                return Followed::Misled;
            }
            path.push((at, location.name));
            at = location.parent;
        };
        while let Some((expected, name)) = path.pop() {
            let Ok(found) = self.tree.lookup(&inode.node, name.clone()).await else {
                return Followed::Misled;
            };
            if found.identity != expected {
                return Followed::Misled;
            }
            let location = Location { parent: inode.identity, name };
            match self.admit(found, export, Some(location)).await {
                Ok(admitted) => inode = admitted,
                Err(_) => return Followed::Misled,
            }
        }
        Followed::Found(inode)
    }

    /// As [`Volume::lookup`], if it was looked up less than `attributes_idle_centisecs` ago, nothing is
    /// known to have changed in the directory since, and the attributes are known. Not for "." and "..".
    pub fn try_lookup(&self, directory: &Arc<Inode<P>>, name: &[u8]) -> Option<(Arc<Inode<P>>, Attributes)> {
        let object = self.names.get(directory, name, self.now(), self.idle_ns())?;
        let inode = self.table.get(&object)?;
        let attributes = self.try_attributes(&inode)?;
        Some((inode, attributes))
    }

    /// What `name` names in a directory, and its attributes.
    pub async fn lookup(
        &self,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Result<(Arc<Inode<P>>, Attributes), VolumeError> {
        names::check(name)?;
        require_directory(directory)?;
        if name == b"." {
            let attributes = self.attributes(directory).await?;
            return Ok((Arc::clone(directory), attributes));
        }
        self.make_room().await;
        let export = self.export_of(directory);
        let inode = if name == b".." {
            if self.exports.iter().any(|served| Arc::ptr_eq(&served.root, directory)) {
                Arc::clone(directory)
            } else {
                let found = self.tree.parent(&directory.node).await?;
                self.admit(found, export, None).await?
            }
        } else {
            let name = Bytes::copy_from_slice(name);
            let (changes, asked) = (directory.changes_seen(), self.now());
            let found = self.tree.lookup(&directory.node, name.clone()).await?;
            let location = Location { parent: directory.identity, name: name.clone() };
            let inode = self.admit(found, export, Some(location)).await?;
            self.names.keep(directory, name, inode.identity, changes, asked);
            inode
        };
        Ok((Arc::clone(&inode), inode.attributes()))
    }

    /// Which export an object's handle names.
    pub(crate) fn export_of(&self, inode: &Inode<P>) -> u16 {
        handle::peek(inode.handle.as_bytes()).map_or(0, |(_, export)| export)
    }

    /// The inode of what the host gave; its attributes are the host's or, where they are unwritten,
    /// ours.
    pub(crate) async fn admit(
        &self,
        found: Found,
        export: u16,
        location: Option<Location>,
    ) -> Result<Arc<Inode<P>>, VolumeError> {
        let Found { node, identity, stat } = found;
        let now = self.now();
        let make = || {
            Inode::new(
                &self.engine,
                identity,
                self.key.seal(&identity, export),
                node,
                stat,
                now,
                &self.table.descriptors,
            )
        };
        let (inode, new) = self.table.get_or_insert(&identity, make);
        if new {
            self.met(&identity);
        }
        if location.is_some() && !self.tree.opens(&identity) {
            inode.state().location = location;
        }
        if !new && inode.differs(&stat, now) {
            // What was seen may be older than a change of ours: it only raises suspicion.
            self.check(&inode).await?;
        }
        Ok(inode)
    }

    /// Asks the host whether others changed an object, and if so forgets what was cached of it.
    pub(crate) async fn check(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if inode.is_removed() {
            return Err(VolumeError::Stale);
        }
        let changing = inode.changing.lock().await;
        let look = inode.look();
        let stat = self.tree.stat(&inode.node).await?;
        let seen = inode.observe(stat, &look, self.now());
        if seen == Seen::Foreign {
            self.forget_cached(inode, stat.size, look.written).await;
            inode.listed().take();
        }
        drop(changing);
        if stat.links == 0 {
            self.gone(inode);
            return Err(VolumeError::Stale);
        }
        Ok(())
    }

    /// Others changed a file: what is cached of its bytes is void. `size` is what the host says, and
    /// `written` the count of the engine's changes from before it was asked.
    pub(crate) async fn forget_cached(&self, inode: &Arc<Inode<P>>, size: u64, written: Option<u64>) {
        let Some(file) = inode.file() else { return };
        // A file that was opened meanwhile began with what was there then.
        let taken = self.engine.invalidate(file, size, written.unwrap_or(0)).await;
        if !taken {
            // We were writing: the size is compared again once that is over.
            inode.state().unsettled = true;
            self.settle_later(inode);
        }
    }

    /// Its last name is gone: nobody finds it any more, those who hold it end with it.
    pub(crate) fn gone(&self, inode: &Arc<Inode<P>>) {
        {
            let mut state = inode.state();
            state.removed = true;
            state.location = None;
        }
        self.remember_gone(&inode.identity);
        self.table.forget(inode);
    }

    /// Drops idle inodes while there are too many; makes some clean if all are dirty. Waits for the
    /// devices only where nothing else helps.
    pub(crate) async fn make_room(&self) {
        if !self.table.is_full() {
            return;
        }
        let _one_at_a_time = self.sweeping.lock().await;
        if !self.table.is_full() {
            return;
        }
        let sweep = self.table.sweep(|inode| self.remember(inode));
        drop(sweep.dropped);
        if !self.table.is_full() {
            return;
        }
        for inode in sweep.unwritten {
            if self.clean(&inode).await {
                inode.recent.store(false, Ordering::Relaxed);
            }
        }
        drop(self.table.sweep(|inode| self.remember(inode)).dropped);
    }

    /// Keeps where an object that is being dropped was found, for trees that cannot open its identity.
    pub(crate) fn remember(&self, inode: &Arc<Inode<P>>) {
        if self.tree.opens(&inode.identity) {
            return;
        }
        match inode.state().location.take() {
            Some(location) => lock(&self.locations).insert(inode.identity, location),
            None => self.lost_sight(),
        }
    }

    /// No walk need look for an object any more: its last name is gone.
    pub(crate) fn remember_gone(&self, identity: &Identity) {
        if !self.tree.opens(identity) {
            lock(&self.searches).set_gone(*identity);
        }
    }

    /// An object came into memory.
    pub(crate) fn met(&self, identity: &Identity) {
        if !self.tree.opens(identity) {
            lock(&self.searches).set_found(identity);
        }
    }

    /// An object, in memory or not, has a new name.
    pub(crate) fn relocate(&self, identity: &Identity, location: Location) {
        if self.tree.opens(identity) {
            return;
        }
        match self.table.get(identity) {
            Some(inode) => inode.state().location = Some(location),
            // Dropped, and what it was known by is remembered already.
            None => lock(&self.locations).insert(*identity, location),
        }
    }
}

pub(crate) fn require_directory<P: Platform>(inode: &Inode<P>) -> Result<(), VolumeError> {
    match inode.kind() {
        Kind::Directory => Ok(()),
        _ => Err(VolumeError::NotDirectory),
    }
}

/// What a handle's object that cannot be reached is: gone, not a wrong name.
fn gone(error: VolumeError) -> VolumeError {
    match error {
        VolumeError::NotFound | VolumeError::NotDirectory => VolumeError::Stale,
        error => error,
    }
}
