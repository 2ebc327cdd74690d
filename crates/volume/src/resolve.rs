//! From handles, names and mount paths to inodes.
//!
//! Owns: lookups, the ways from a handle back to an object, room in the table, the check of an idle
//! object against the host.
//! Does not own: the table (`table`), the layout of handles (`handle`).
//! Invariants: an object that is gone is `Stale`, never `NotFound`. What a location leads to is used
//! only if its identity is the one looked for. An export is left by no name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::{Nanos, Platform};

use crate::attributes::{Attributes, Kind};
use crate::directory::{Found, Node};
use crate::error::VolumeError;
use crate::handle::{self, Identity};
use crate::inode::{Inode, Seen};
use crate::location::Location;
use crate::names;
use crate::volume::{Volume, lock};

/// Pause between two walks of the exports in search of identities.
const WALK_PAUSE_NS: u64 = 5 * Nanos::SECOND;
/// Most names between a remembered object and its export's root.
const DEPTH_MAX: usize = 256;

/// When the exports were last walked to the end.
#[derive(Default)]
pub(crate) struct Walk {
    ended: Option<Nanos>,
}

/// A directory on the path of a walk.
struct Level {
    node: Node,
    identity: Identity,
    /// Its directories that are still to be read.
    directories: Vec<Bytes>,
    /// The entry that is looked for, if it is here.
    wanted: Option<Bytes>,
}

impl<P: Platform> Volume<P> {
    /// The directory that a mount path names: "" and "/" are the export where there is one; with
    /// several the first name is the export's. Symbolic links are not followed, and ".." stops at the
    /// export's root.
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
        for name in names {
            inode = self.lookup(&inode, name).await?.0;
            if inode.kind() == Kind::Symlink {
                return Err(VolumeError::Symlink);
            }
        }
        if inode.kind() == Kind::Directory { Ok(inode) } else { Err(VolumeError::NotDirectory) }
    }

    /// The object of a handle, if it is in memory. Asks the host nothing.
    pub fn try_resolve(&self, handle: &[u8]) -> Option<Arc<Inode<P>>> {
        let (identity, _) = handle::peek(handle).ok()?;
        // The whole handle is compared, its hash with it: a forged one is never equal.
        self.table.get(&identity).filter(|inode| inode.handle.as_bytes() == handle)
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
        self.resolve_identity(identity, export).await
    }

    async fn resolve_identity(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        if let Some(inode) = self.table.get(&identity) {
            return Ok(inode);
        }
        self.make_room().await;
        if self.tree.opens_by_identity() {
            match self.tree.open_identity(identity).await {
                Ok(found) => return self.admit(found, export, None).await,
                Err(VolumeError::NotSupported) => {}
                Err(error) => return Err(gone(error)),
            }
        }
        if let Some(inode) = self.follow(identity, export).await {
            return Ok(inode);
        }
        // One walk serves all who wait for it.
        let mut walk = self.walk.lock().await;
        if let Some(inode) = self.follow(identity, export).await {
            return Ok(inode);
        }
        if walk.ended.is_some_and(|ended| self.now().since(ended) < WALK_PAUSE_NS) {
            return Err(VolumeError::Stale);
        }
        if let Some(inode) = self.walk_for(identity).await {
            return Ok(inode);
        }
        // All was seen: what is not there now will hardly be in the next seconds.
        walk.ended = Some(self.now());
        Err(VolumeError::Stale)
    }

    /// Goes down from a known ancestor along remembered locations.
    async fn follow(&self, identity: Identity, export: u16) -> Option<Arc<Inode<P>>> {
        let mut path = Vec::new();
        let mut at = identity;
        let mut inode = loop {
            if let Some(inode) = self.table.get(&at) {
                break inode;
            }
            let location = lock(&self.locations).get(&at).cloned()?;
            if path.len() == DEPTH_MAX {
                return None;
            }
            path.push((at, location.name));
            at = location.parent;
        };
        while let Some((expected, name)) = path.pop() {
            let found = self.tree.lookup(&inode.node, name.clone()).await.ok()?;
            if found.identity != expected {
                return None;
            }
            let location = Location { parent: inode.identity, name };
            inode = self.admit(found, export, Some(location)).await.ok()?;
        }
        Some(inode)
    }

    /// Walks the exports, a directory at a time, and remembers where everything is; ends early where
    /// `wanted` is found. Holds open what is on the path to the directory being read, no more.
    async fn walk_for(&self, wanted: Identity) -> Option<Arc<Inode<P>>> {
        for export in &self.exports {
            let root = &export.root;
            let mut path = vec![self.scan(root.node.clone(), root.identity, wanted).await];
            while let Some(level) = path.last_mut() {
                self.engine.platform().preemption_point().await;
                if let Some(name) = level.wanted.take() {
                    let location = Location { parent: level.identity, name: name.clone() };
                    let found = self.tree.lookup(&level.node, name).await.ok()?;
                    let found = (found.identity == wanted).then_some(found)?;
                    return self.admit(found, export.tag, Some(location)).await.ok();
                }
                let Some(name) = level.directories.pop() else {
                    path.pop();
                    continue;
                };
                let node = level.node.clone();
                if path.len() == DEPTH_MAX {
                    continue;
                }
                if let Ok(found) = self.tree.lookup(&node, name).await {
                    path.push(self.scan(found.node, found.identity, wanted).await);
                }
            }
        }
        None
    }

    /// Reads one directory for a walk; one that cannot be read is empty.
    async fn scan(&self, node: Node, identity: Identity, wanted: Identity) -> Level {
        let entries = self.tree.identities(&node).await.unwrap_or_default();
        let mut level = Level { node, identity, directories: Vec::new(), wanted: None };
        let mut locations = lock(&self.locations);
        for entry in entries {
            locations.insert(entry.identity, Location { parent: identity, name: entry.name.clone() });
            if entry.identity == wanted {
                level.wanted = Some(entry.name.clone());
            }
            if entry.directory {
                level.directories.push(entry.name);
            }
        }
        level
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
            let found = self.tree.lookup(&directory.node, name.clone()).await?;
            let location = Location { parent: directory.identity, name };
            self.admit(found, export, Some(location)).await?
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
        if !self.tree.opens_by_identity() && location.is_some() {
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
        let changes = inode.changes.load(Ordering::Relaxed);
        let stat = self.tree.stat(&inode.node).await?;
        let seen = inode.observe(stat, changes, self.now());
        if seen == Seen::Foreign {
            if let Some(file) = inode.file() {
                self.engine.invalidate(file, stat.size).await;
            }
            inode.listed().take();
        }
        drop(changing);
        if stat.links == 0 {
            self.gone(inode);
            return Err(VolumeError::Stale);
        }
        Ok(())
    }

    /// Its last name is gone: nobody finds it any more, those who hold it end with it.
    pub(crate) fn gone(&self, inode: &Arc<Inode<P>>) {
        inode.state().removed = true;
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
        let sweep = self.table.sweep();
        for inode in &sweep.dropped {
            self.remember(inode);
        }
        drop(sweep.dropped);
        if !self.table.is_full() {
            return;
        }
        for inode in sweep.unwritten {
            if self.clean(&inode).await {
                inode.recent.store(false, Ordering::Relaxed);
            }
        }
        let sweep = self.table.sweep();
        for inode in &sweep.dropped {
            self.remember(inode);
        }
    }

    /// Keeps where a dropped object was found, for trees that cannot open identities.
    pub(crate) fn remember(&self, inode: &Arc<Inode<P>>) {
        if let Some(location) = inode.state().location.take() {
            lock(&self.locations).insert(inode.identity, location);
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
