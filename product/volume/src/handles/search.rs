//! The search for objects that no location leads to, where a tree cannot open identities.
//!
//! Owns: walks of the exports, and when an object that none met is called gone.
//! Does not own: what is kept of walks and of who waits for one (`objects::sightings`, `objects::walk`), the
//! other ways from a handle to its object (`resolve`).
//! Invariants: one walk at a time, and one serves everybody who waits when it begins. After a walk to the
//! end there is a pause, so that handles of what is gone cost a walk in a pause however many there are.
//! An object is called `Stale` because of a walk only if that began after the object was asked for, or when
//! nothing was lost from sight since, and if nothing of ours was carried past the walk.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;

use super::follow::{DEPTH_MAX, Followed};
use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::location::Location;
use crate::objects::sightings::Wanted;
use crate::objects::walk::{Walk, Walked};
use crate::tree::directory::Node;
use crate::tree::identity::Identity;
use crate::volume::Volume;

/// Pause between two walks to the end of the exports in search of identities.
const WALK_PAUSE_NS: u64 = 5 * Nanos::SECOND;
/// Most walks that one search waits for.
const WALKS_MAX: usize = 3;

/// A directory on the path of a walk.
struct Level {
    node: Node,
    identity: Identity,
    /// Its directories that are still to be read.
    directories: Vec<Bytes>,
    /// The entries that are looked for.
    wanted: Vec<(Identity, Bytes)>,
}

impl<P: Platform> Volume<P> {
    /// Walks the exports for an object that no location leads to. It is `Stale` only if a walk says so
    /// that nothing of ours was carried past; what others moved is found once a pause has passed.
    pub(crate) async fn search(&self, identity: Identity, export: u16) -> Result<Arc<Inode<P>>, VolumeError> {
        let wanted = self.sightings.want(identity);
        for _ in 0..WALKS_MAX {
            // One walk serves all who wait for it.
            let mut walk = self.walk.lock().await;
            let followed = self.follow(identity, export).await;
            if let Followed::Found(inode) = followed {
                return Ok(inode);
            }
            if let Some(last) = &walk.last {
                if self.says_gone(last, &wanted, matches!(followed, Followed::Unknown)) {
                    return Err(VolumeError::Stale);
                }
                self.engine.platform().sleep_until(last.ended.after(WALK_PAUSE_NS)).await;
            }
            self.walk_for_all(&mut walk).await;
            // A rename that was under way has left its location once this can be had.
            drop(self.moving.lock().await);
            if let Followed::Found(inode) = self.follow(identity, export).await {
                return Ok(inode);
            }
            if walk.last.as_ref().is_some_and(|last| self.says_gone(last, &wanted, false)) {
                // So that it is not looked for where it was.
                self.sightings.not_there(&identity);
                return Err(VolumeError::Stale);
            }
        }
        Err(VolumeError::Stale)
    }

    /// Whether a walk is enough to say that an object which it did not meet is gone.
    fn says_gone(&self, last: &Walked, wanted: &Wanted<'_>, unknown: bool) -> bool {
        let looked_for = last.number > wanted.begun && !last.missed.contains(&wanted.identity);
        // All was seen: what was not there then will hardly be in the next seconds.
        let recent = unknown && self.now().since(last.ended) < WALK_PAUSE_NS && last.sight == self.sightings.sight();
        last.complete && (looked_for || recent)
    }

    /// Walks until everything is met that is wanted, or to the end: then so that nothing of ours is carried
    /// past, if need be by holding renames off in a second walk.
    async fn walk_for_all(&self, walk: &mut Walk<P>) {
        walk.met.clear();
        let before = walk.last.take();
        for held in [false, true] {
            let number = self.sightings.begin_walk();
            let (carried, sight) = (self.sightings.carried_count(), self.sightings.sight());
            // Whoever gives up in the middle leaves the pause to the others all the same.
            let begun = Walked { number, ended: self.now(), complete: false, missed: BTreeSet::new(), sight };
            walk.last = Some(begun.clone());
            let moving = if held { Some(self.moving.lock().await) } else { None };
            let mut missed = BTreeSet::new();
            let to_the_end = self.walk_once(&mut walk.met, &mut missed).await;
            let carried_past = moving.is_none() && self.sightings.carried_count() != carried;
            drop(moving);
            if !to_the_end {
                // Everybody has what was wanted: the next search need not wait for this one.
                walk.last = before;
                return;
            }
            walk.last = Some(Walked { ended: self.now(), complete: !carried_past, missed, ..begun });
            if !carried_past {
                return;
            }
        }
    }

    /// Walks the exports, a directory at a time, and remembers where everything is. Holds open what is on
    /// the path to the directory being read, no more. False if it ended early, since all was met.
    async fn walk_once(&self, met: &mut Vec<Arc<Inode<P>>>, missed: &mut BTreeSet<Identity>) -> bool {
        let mut open: BTreeSet<Identity> = self.sightings.wanted();
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
                        // Moved since: what was remembered of it may be older than the move.
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

    /// The wanted object, where a walk has just seen it.
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
            self.sightings.lost_sight();
        }
        self.admit(found?, export, Some(Location { parent, name })).await.ok()
    }

    /// Reads one directory for a walk; one that cannot be read is empty.
    async fn scan(&self, node: Node, identity: Identity, wanted: &BTreeSet<Identity>) -> Level {
        let entries = self.tree.identities(&node).await.unwrap_or_default();
        let mut level = Level { node, identity, directories: Vec::new(), wanted: Vec::new() };
        self.sightings.listed(identity, &entries);
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
