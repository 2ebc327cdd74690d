//! The search for objects without a known location, where a tree cannot open identities.
//!
//! Owns: walks of the exports, and when an object that no walk met counts as gone.
//! Does not own: the records of walks and of their waiters (`objects::known_locations`, `objects::walk`), the other
//! ways from a handle to its object (`resolve`).
//! Invariants: one walk at a time, and it serves all callers that wait at its begin. There is a pause after each
//! complete walk, so that any number of handles of removed objects cost one walk in a pause. A walk shows an object to
//! be `Stale` only if no change of ours carried a directory past the walk. It must also have begun after the object was
//! asked for, or no object may have been lost from sight since its begin.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;

use super::follow::{DEPTH_MAX, Followed};
use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::known_locations::WantedObject;
use crate::objects::location::Location;
use crate::objects::walk::{Walk, Walked};
use crate::tree::directory::Node;
use crate::tree::identity::Identity;
use crate::volume::Volume;

/// Pause between two complete walks of the exports in search of identities.
const WALK_PAUSE_NS: u64 = 5 * Nanos::SECOND;
/// Most walks that one search waits for.
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

impl<P: Platform> Volume<P> {
    /// Walks the exports for an object without a known location. It is `Stale` only after a walk that no directory of
    /// ours was carried past. An object that others moved is found after a pause.
    pub(crate) async fn search(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        let wanted = self.known_locations.want(identity);
        for _ in 0..WALKS_MAX {
            // One walk serves all its waiters.
            let mut walk = self.walk.lock().await;
            let followed = self.follow(identity, export).await;
            if let Followed::Found(inode) = followed {
                return Ok(inode);
            }
            if let Some(last) = &walk.last {
                if self.proves_gone(last, &wanted, matches!(followed, Followed::Unknown)) {
                    return Err(VolumeError::Stale);
                }
                self.engine.platform().sleep_until(last.ended.after(WALK_PAUSE_NS)).await;
            }
            self.walk_for_all(&mut walk).await;
            // A rename that was under way has recorded its location once this lock is taken.
            drop(self.moving.lock().await);
            if let Followed::Found(inode) = self.follow(identity, export).await {
                return Ok(inode);
            }
            if walk.last.as_ref().is_some_and(|last| self.proves_gone(last, &wanted, false)) {
                // The object must not be looked for at its old location.
                self.known_locations.remove_location(&identity);
                return Err(VolumeError::Stale);
            }
        }
        Err(VolumeError::Stale)
    }

    /// Whether a walk suffices to call an object gone that it did not meet.
    fn proves_gone(&self, last: &Walked, wanted: &WantedObject<'_>, unknown: bool) -> bool {
        let looked_for = last.number > wanted.begun && !last.missed.contains(&wanted.identity);
        // The walk saw everything: an object missing then will hardly appear in the next seconds.
        let recent =
            unknown && self.now().since(last.ended) < WALK_PAUSE_NS && last.sight == self.known_locations.sight();
        last.complete && (looked_for || recent)
    }

    /// Walks until every wanted object is met, or to the end. A walk to the end must not have had a directory of ours
    /// carried past it; if one was, a second walk holds off renames.
    async fn walk_for_all(&self, walk: &mut Walk<P>) {
        walk.met.clear();
        let before = walk.last.take();
        for held in [false, true] {
            let number = self.known_locations.begin_walk();
            let (carried, sight) = (self.known_locations.carried_count(), self.known_locations.sight());
            // A caller that gives up in the middle still leaves the pause to the others.
            let begun = Walked { number, ended: self.now(), complete: false, missed: BTreeSet::new(), sight };
            walk.last = Some(begun.clone());
            let moving = if held { Some(self.moving.lock().await) } else { None };
            let mut missed = BTreeSet::new();
            let to_the_end = self.walk_once(&mut walk.met, &mut missed).await;
            let carried_past = moving.is_none() && self.known_locations.carried_count() != carried;
            drop(moving);
            if !to_the_end {
                // All wanted objects were met: the next search need not wait because of this walk.
                walk.last = before;
                return;
            }
            walk.last = Some(Walked { ended: self.now(), complete: !carried_past, missed, ..begun });
            if !carried_past {
                return;
            }
        }
    }

    /// Walks the exports, a directory at a time, and records all locations. Holds open only the path to the current
    /// directory. False if it ended early, since all wanted objects were met.
    async fn walk_once(&self, met: &mut Vec<Arc<Inode<P>>>, missed: &mut BTreeSet<Identity>) -> bool {
        let mut open: BTreeSet<Identity> = self.known_locations.wanted();
        for inode in met.iter() {
            open.remove(&inode.identity);
        }
        if open.is_empty() {
            return false;
        }
        for export in &self.exports {
            let root = &export.root;
            let mut path = vec![self.scan(root.node.clone(), root.identity, &open).await];
            while let Some(level) = path.last_mut() {
                self.engine.platform().preemption_point().await;
                for (wanted, name) in mem::take(&mut level.wanted) {
                    match self.reach(&level.node, level.identity, wanted, name, export.tag).await {
                        Some(inode) => {
                            open.remove(&wanted);
                            missed.remove(&wanted);
                            met.push(inode);
                        }
                        // It was moved since: its remembered location may be older than the move.
                        None => {
                            missed.insert(wanted);
                        }
                    }
                    if open.is_empty() {
                        return false;
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
                    path.push(self.scan(found.node, found.identity, &open).await);
                }
            }
        }
        true
    }

    /// The wanted object, if the walk has just seen it.
    async fn reach(
        &self,
        node: &Node,
        parent: Identity,
        wanted: Identity,
        name: Bytes,
        export: u16,
    ) -> Option<Arc<Inode<P>>> {
        let found = self.tree.lookup(node, name.clone()).await.ok().filter(|found| found.identity == wanted);
        if found.is_none() {
            self.known_locations.note_lost_location();
        }
        self.admit(found?, export, Some(Location { parent, name })).await.ok()
    }

    /// Reads one directory for a walk; an unreadable one counts as empty.
    async fn scan(&self, node: Node, identity: Identity, wanted: &BTreeSet<Identity>) -> Level {
        let entries = self.tree.identities(&node).await.unwrap_or_default();
        let mut level = Level { node, identity, directories: Vec::new(), wanted: Vec::new() };
        self.known_locations.listed(identity, &entries);
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
