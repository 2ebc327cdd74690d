//! From handles, names and mount paths to inodes.
//!
//! Owns: lookups, the ways from a handle back to an object, room in the table, the check of an idle
//! object against the host.
//! Does not own: the table (`table`), the layout of handles (`handle`).
//! Invariants: an object that is gone is `Stale`, never `NotFound`. What a location leads to is used
//! only if its identity is the one looked for. An export is left by no name.

use std::collections::VecDeque;
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
/// Most walks for one identity, where directories are moved meanwhile: during the last none can be.
const WALKS_MAX: usize = 3;
/// Most symbolic links on a mount path, as on the host's paths.
const LINKS_MAX: usize = 40;
/// Most names between a remembered object and its export's root.
const DEPTH_MAX: usize = 256;

/// The last walk of all exports to the end.
#[derive(Default)]
pub(crate) struct Walk {
    last: Option<Walked>,
}

struct Walked {
    began: Nanos,
    ended: Nanos,
    /// From before it began.
    reach: Reach,
}

/// While this stays the same, a walk to the end has met everything that no location leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reach {
    /// Changes of ours that can carry something past a walk, or leave it without a location.
    moves: u64,
    /// How often locations had to be dropped.
    dropped: u64,
}

/// Where remembered locations led to.
enum Followed<P: Platform> {
    /// To the object.
    Found(Arc<Inode<P>>),
    /// Nowhere: there are none.
    Unknown,
    /// To something else: it was moved or removed since.
    Misled,
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
        if self.tree.opens(&identity) {
            match self.tree.open_identity(identity).await {
                Ok(found) => return self.admit(found, export, None).await,
                Err(VolumeError::NotSupported) => {}
                Err(error) => return Err(gone(error)),
            }
        }
        if let Followed::Found(inode) = self.follow(identity, export).await {
            return Ok(inode);
        }
        self.search(identity, export).await
    }

    /// Walks the exports for an object that no location leads to. It is `Stale` only if a walk says so
    /// that nothing of ours was carried past; what others moved is found once a pause has passed.
    async fn search(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        let asked = self.now();
        for walks_left in (0..WALKS_MAX).rev() {
            // One walk serves all who wait for it.
            let mut walk = self.walk.lock().await;
            let followed = self.follow(identity, export).await;
            if let Followed::Found(inode) = followed {
                return Ok(inode);
            }
            if let Some(last) = &walk.last {
                // All was seen: what was not there then will hardly be in the next seconds.
                let fresh = last.began >= asked || self.now().since(last.ended) < WALK_PAUSE_NS;
                if fresh && matches!(followed, Followed::Unknown) && last.reach == self.reach() {
                    return Err(VolumeError::Stale);
                }
                self.engine.platform().sleep_until(last.ended.after(WALK_PAUSE_NS)).await;
            }
            let (began, reach) = (self.now(), self.reach());
            let mut moving = if walks_left == 0 { Some(self.moving.lock().await) } else { None };
            let met = self.walk_for(identity).await;
            moving.take();
            if let Some((found, tag, location)) = met {
                if let Ok(inode) = self.admit(found, tag, Some(location)).await {
                    return Ok(inode);
                }
                continue;
            }
            walk.last = Some(Walked { began, ended: self.now(), reach });
            // A rename that was under way has left its location once this can be had.
            drop(self.moving.lock().await);
            if let Followed::Found(inode) = self.follow(identity, export).await {
                return Ok(inode);
            }
            // It was looked for itself: that locations of others had to be dropped does not matter.
            if walks_left == 0 || reach.moves == self.reach().moves {
                break;
            }
        }
        Err(VolumeError::Stale)
    }

    fn reach(&self) -> Reach {
        Reach { moves: self.moves.load(Ordering::SeqCst), dropped: lock(&self.locations).dropped() }
    }

    /// Goes down from a known ancestor along remembered locations.
    async fn follow(&self, identity: Identity, export: u16) -> Followed<P> {
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

    /// Walks the exports, a directory at a time, and remembers where everything is; ends early where
    /// `wanted` is found, with its export's tag and location. Holds open what is on the path to the
    /// directory being read, no more.
    async fn walk_for(&self, wanted: Identity) -> Option<(Found, u16, Location)> {
        for export in &self.exports {
            let root = &export.root;
            let mut path = vec![self.scan(root.node.clone(), root.identity, wanted).await];
            while let Some(level) = path.last_mut() {
                self.engine.platform().preemption_point().await;
                if let Some(name) = level.wanted.take() {
                    let location = Location { parent: level.identity, name: name.clone() };
                    match self.tree.lookup(&level.node, name).await {
                        Ok(found) if found.identity == wanted => return Some((found, export.tag, location)),
                        // Moved since: what was remembered of it may be older than the move.
                        _ => self.moved_past(),
                    }
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
            None => self.moved_past(),
        }
    }

    /// What a walk has seen is not all that there is any more.
    pub(crate) fn moved_past(&self) {
        self.moves.fetch_add(1, Ordering::SeqCst);
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
