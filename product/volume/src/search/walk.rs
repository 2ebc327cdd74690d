//! The search for an object: along its remembered location, or by a walk of the exports.
//!
//! Owns: the path down from an ancestor in memory, and its length; walks of the exports, and when an object that no
//! walk found counts as gone.
//! Does not own: locations, the records of walks and of their waiters (`known_locations`), the other methods to find a
//! handle's object (`handles`).
//! Invariants: an object found by a location is used only if it has the wanted identity. A name counts as gone only if
//! the host says so. The caller gets any other error. An export has one walk at a time, which serves all callers that
//! wait at its start. There is a pause after each complete walk, so that any number of handles of removed objects cost
//! one walk in a pause. An export that hangs stops searches for its own objects and for removed ones, since only walks
//! of all exports show a removal. A rename waits for no walk. A complete walk has read every directory, also below
//! those that our renames carried past it. It shows that an object is gone if it began after the request for the
//! object, or if no object was lost from sight since.

use std::collections::BTreeSet;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::search::SearchedExport;
use crate::search::known_locations::{Walk, Walked, WantedObject};
use crate::tree::directory::{Location, Node};
use crate::tree::identity::Identity;
use crate::volume::Volume;

/// Pause between two complete walks of an export in search of identities.
const WALK_PAUSE_NS: u64 = 5 * Nanos::SECOND;
/// Linux's errno for something to be tried again.
const EAGAIN: i32 = 11;
/// Linux's errno for a path that is too long.
const ENAMETOOLONG: i32 = 36;
/// Most walks of an export that one search waits for.
const WALKS_MAX: usize = 3;

/// A directory on the path of a walk.
struct Level {
    node: Node,
    identity: Identity,
    /// Its subdirectories that are still to be read.
    directories: Vec<Bytes>,
    /// The wanted entries.
    wanted: Vec<(Identity, Bytes)>,
}

/// What a walk has seen.
struct Seen {
    /// Wanted and seen, but already gone from there.
    missed: BTreeSet<Identity>,
    /// Or the first error.
    whole: Result<(), VolumeError>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { missed: BTreeSet::new(), whole: Ok(()) }
    }
}

impl Seen {
    /// The walk could not see a part. An error other than absence makes the walk incomplete.
    fn not(&mut self, error: VolumeError) {
        match error {
            VolumeError::NotFound | VolumeError::NotDirectory => {}
            // The directory was moved out, or removed after its entries had gone elsewhere.
            VolumeError::Stale if self.whole.is_ok() => self.whole = Err(VolumeError::Io { errno: EAGAIN }),
            error if self.whole.is_ok() => self.whole = Err(error),
            _ => {}
        }
    }
}

/// The result of a search below one export.
enum Searched<P: Platform> {
    Found(Arc<Inode<P>>),
    /// It was not there when a walk came by.
    Gone,
    /// It may have been moved past the walk.
    Missed,
}

impl<P: Platform> Volume<P> {
    /// The object of an identity that the tree does not open. This is rare: callers box the future, which would be the
    /// largest part of each call's.
    pub(crate) async fn find_by_search(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        if self.search.known.is_gone(&identity) {
            return Err(VolumeError::Stale);
        }
        match self.follow(identity, export).await {
            Followed::Found(inode) => Ok(inode),
            Followed::Unknown | Followed::Misled => self.walk_for(identity, export).await,
            Followed::Failed(error) => Err(error),
        }
    }

    /// Walks the exports for an object without a known location: first the one that its handle names. An object that
    /// others moved is found after a pause.
    async fn walk_for(&self, identity: Identity, tag: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        let wanted = self.search.known.want(identity);
        let (own, others): (Vec<_>, Vec<_>) = self.search.exports.iter().partition(|export| export.tag == tag);
        for _ in 0..WALKS_MAX {
            let crossed = self.search.known.crossed_count();
            let (mut is_gone, mut seen) = (true, Ok(()));
            for export in own.iter().chain(&others) {
                match self.search_below(export, &wanted, tag).await {
                    Ok(Searched::Found(inode)) => return Ok(inode),
                    Ok(Searched::Gone) => {}
                    Ok(Searched::Missed) => is_gone = false,
                    Err(error) => seen = seen.and(Err(error)),
                }
            }
            seen?;
            if is_gone && self.search.known.crossed_count() == crossed {
                // The object must not be looked for at its old location.
                self.search.known.remove_location(&identity);
                return Err(VolumeError::Stale);
            }
        }
        // Others moved it each time.
        Err(VolumeError::Io { errno: EAGAIN })
    }

    async fn search_below(
        &self,
        export: &SearchedExport<P>,
        wanted: &WantedObject<'_>,
        tag: u16,
    ) -> Result<Searched<P>, VolumeError> {
        // One walk serves all its waiters.
        let mut walk = export.walk.lock().await;
        let followed = self.follow(wanted.identity, tag).await;
        let is_unknown = matches!(followed, Followed::Unknown);
        match followed {
            Followed::Found(inode) => return Ok(Searched::Found(inode)),
            Followed::Failed(error) => return Err(error),
            Followed::Unknown | Followed::Misled => {}
        }
        if let Some(last) = &walk.last {
            if self.does_prove_gone(last, wanted, is_unknown) {
                return Ok(Searched::Gone);
            }
            self.engine.platform().sleep_until(last.ended.after(WALK_PAUSE_NS)).await;
        }
        let walked = self.walk_for_all(export, &mut walk).await;
        match self.follow(wanted.identity, tag).await {
            Followed::Found(inode) => return Ok(Searched::Found(inode)),
            Followed::Failed(error) => return Err(error),
            Followed::Unknown | Followed::Misled => walked?,
        }
        let is_gone = walk.last.as_ref().is_some_and(|last| self.does_prove_gone(last, wanted, false));
        Ok(if is_gone { Searched::Gone } else { Searched::Missed })
    }

    /// Whether a walk that did not find an object proves that the object is gone.
    fn does_prove_gone(&self, last: &Walked, wanted: &WantedObject<'_>, unknown: bool) -> bool {
        let looked_for = last.index > wanted.begun && !last.missed.contains(&wanted.identity);
        // The walk saw everything: an object missing then will hardly appear in the next seconds.
        let recent = unknown && self.now().since(last.ended) < WALK_PAUSE_NS && last.sight == self.search.known.sight();
        last.complete && last.crossed == self.search.known.crossed_count() && (looked_for || recent)
    }

    /// Walks until every wanted object is found, or to the end. The error is of a part that could not be seen.
    async fn walk_for_all(&self, export: &SearchedExport<P>, walk: &mut Walk<P>) -> Result<(), VolumeError> {
        walk.found.clear();
        let before = walk.last.take();
        let known = &self.search.known;
        let (index, sight, crossed) = (known.begin_walk(), known.sight(), known.crossed_count());
        // A caller that gives up in the middle still leaves the pause to the others.
        let begun = Walked { index, ended: self.now(), complete: false, missed: BTreeSet::new(), sight, crossed };
        walk.last = Some(begun.clone());
        let mut seen = Seen::default();
        if self.walk_once(export, &mut walk.found, &mut seen).await.is_break() {
            // All wanted objects were found: the next search need not wait because of this walk.
            walk.last = before;
            return Ok(());
        }
        let Seen { missed, whole } = seen;
        walk.last = Some(Walked { ended: self.now(), complete: whole.is_ok(), missed, ..begun });
        whole
    }

    /// Walks an export, then each directory that a rename of ours carried meanwhile, once: the walk may have missed
    /// what is below. Breaks off once all wanted objects are found.
    async fn walk_once(
        &self,
        export: &SearchedExport<P>,
        met: &mut Vec<Arc<Inode<P>>>,
        seen: &mut Seen,
    ) -> ControlFlow<()> {
        let mut open: BTreeSet<Identity> = self.search.known.wanted();
        let begun = self.search.known.carried_count();
        let (mut start, mut again) = (Arc::clone(&export.root), BTreeSet::new());
        loop {
            self.walk_from(&start, export.tag, &mut open, &mut *met, &mut *seen).await?;
            start = loop {
                // A rename that was under way has recorded its directory once this lock is taken. Others wait for a few
                // lookups.
                let _moving = export.moving.lock().await;
                let Some(carried) = self.search.known.carried_since(begun, export.tag) else {
                    seen.not(VolumeError::Stale);
                    return ControlFlow::Continue(());
                };
                let Some(directory) = carried.difference(&again).next().copied() else {
                    return ControlFlow::Continue(());
                };
                again.insert(directory);
                match self.follow(directory, export.tag).await {
                    Followed::Found(inode) => break inode,
                    _ if self.search.known.is_gone(&directory) => {}
                    Followed::Unknown | Followed::Misled => seen.not(VolumeError::Stale),
                    Followed::Failed(error) => seen.not(error),
                }
            };
        }
    }

    /// Walks a directory at a time, and records all locations. Holds open only the path to the current directory.
    /// Breaks off once all wanted objects are found.
    async fn walk_from(
        &self,
        start: &Inode<P>,
        export: u16,
        open: &mut BTreeSet<Identity>,
        met: &mut Vec<Arc<Inode<P>>>,
        seen: &mut Seen,
    ) -> ControlFlow<()> {
        if open.is_empty() {
            return ControlFlow::Break(());
        }
        let mut path = vec![self.scan(start.node.clone(), start.identity, open, seen).await];
        while let Some(level) = path.last_mut() {
            self.engine.platform().preemption_point().await;
            for (wanted, name) in mem::take(&mut level.wanted) {
                match self.reach(&level.node, level.identity, wanted, name, export).await {
                    Ok(Some(inode)) => {
                        open.remove(&wanted);
                        seen.missed.remove(&wanted);
                        met.push(inode);
                    }
                    // It was moved since: its remembered location may be older than the move.
                    Ok(None) => {
                        seen.missed.insert(wanted);
                    }
                    Err(error) => seen.not(error),
                }
                if open.is_empty() {
                    return ControlFlow::Break(());
                }
            }
            let Some(name) = level.directories.pop() else {
                path.pop();
                continue;
            };
            let node = level.node.clone();
            if path.len() == DEPTH_MAX {
                seen.not(VolumeError::Io { errno: ENAMETOOLONG });
                continue;
            }
            match self.tree.lookup(&node, name).await {
                Ok(found) => path.push(self.scan(found.node, found.identity, open, seen).await),
                Err(error) => seen.not(error),
            }
        }
        ControlFlow::Continue(())
    }

    /// The wanted object, if the walk has just seen it, and it is still there.
    async fn reach(
        &self,
        node: &Node,
        parent: Identity,
        wanted: Identity,
        name: Bytes,
        export: u16,
    ) -> Result<Option<Arc<Inode<P>>>, VolumeError> {
        let found = match self.tree.lookup(node, name.clone()).await {
            Ok(found) if found.identity == wanted => found,
            Ok(_) | Err(VolumeError::NotFound | VolumeError::NotDirectory) => {
                self.search.known.note_lost_location();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match self.admit(found, export, Some(Location { parent, name })).await {
            Ok(inode) => Ok(Some(inode)),
            // It has lost its last name since.
            Err(VolumeError::Stale) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one directory for a walk.
    async fn scan(&self, node: Node, identity: Identity, wanted: &BTreeSet<Identity>, seen: &mut Seen) -> Level {
        let moves = self.search.known.carried_count();
        let entries = match self.tree.identities(&node).await {
            Ok(entries) => entries,
            Err(error) => {
                seen.not(error);
                Vec::new()
            }
        };
        let mut level = Level { node, identity, directories: Vec::new(), wanted: Vec::new() };
        self.search.known.listed(identity, &entries, moves);
        for entry in entries {
            if wanted.contains(&entry.identity) {
                level.wanted.push((entry.identity, entry.name.clone()));
            }
            if entry.directory {
                level.directories.push(entry.name);
            }
        }
        level
    }
}

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
    /// The host could not answer.
    Failed(VolumeError),
}

impl<P: Platform> From<VolumeError> for Followed<P> {
    /// The meaning of an error on the path. Behind a directory that may not be searched the object is found by no name,
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
