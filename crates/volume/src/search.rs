//! The search for objects that no location leads to, where a tree cannot open identities.
//!
//! Owns: walks of the exports, who waits for one, what is known to be gone.
//! Does not own: locations (`location`), the other ways from a handle to its object (`resolve`).
//! Invariants: one walk at a time, and one serves everybody who waits when it begins. After a walk to the
//! end there is a pause, so that handles of what is gone cost a walk in a pause however many there are.
//! An object is called `Stale` because of a walk only if that began after the object was asked for, or when
//! nothing was lost from sight since, and if nothing of ours was carried past the walk.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use engine::{Nanos, Platform};

use crate::directory::Node;
use crate::error::VolumeError;
use crate::handle::{Identity, IdentityMap};
use crate::inode::Inode;
use crate::location::Location;
use crate::resolve::Followed;
use crate::volume::{Volume, lock};

/// Pause between two walks to the end of the exports in search of identities.
const WALK_PAUSE_NS: u64 = 5 * Nanos::SECOND;
/// Most walks that one search waits for.
const WALKS_MAX: usize = 3;
/// Most names between an object and its export's root.
pub(crate) const DEPTH_MAX: usize = 256;
/// Most objects that are remembered to be gone.
const GONE_MAX: usize = 65_536;

/// The last walk that was begun.
pub(crate) struct Walk<P: Platform> {
    last: Option<Walked>,
    /// What it met of what was wanted: kept in memory until those who wait have it.
    met: Vec<Arc<Inode<P>>>,
}

impl<P: Platform> Default for Walk<P> {
    fn default() -> Self {
        Self { last: None, met: Vec::new() }
    }
}

#[derive(Clone)]
struct Walked {
    /// Counts walks: it looked for everything that was wanted before it had this number.
    number: u64,
    ended: Nanos,
    /// It went to the end, and nothing of ours was carried past it.
    complete: bool,
    /// Wanted and seen, but not where it was seen any more.
    missed: BTreeSet<Identity>,
    /// From before it began.
    sight: Sight,
}

/// While this stays the same, what a walk has met can be found by its location.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sight {
    /// Changes of ours that leave something without a location.
    lost: u64,
    /// How often locations had to be dropped.
    dropped: u64,
}

/// Counts changes of ours that matter to walks.
#[derive(Default)]
pub(crate) struct Moves {
    carried: AtomicU64,
    lost: AtomicU64,
}

/// What is looked for, and what need not be.
#[derive(Default)]
pub(crate) struct Searches {
    /// With how many wait for each.
    wanted: IdentityMap<u32>,
    /// How many walks have begun.
    begun: u64,
    /// Objects whose last name we took, or saw taken, in two generations.
    gone: IdentityMap<()>,
    gone_before: IdentityMap<()>,
}

impl Searches {
    pub(crate) fn is_gone(&self, identity: &Identity) -> bool {
        self.gone.contains_key(identity) || self.gone_before.contains_key(identity)
    }

    /// The object's last name is gone. With a kernel's handle its identity never comes back.
    pub(crate) fn set_gone(&mut self, identity: Identity) {
        if self.gone.len() >= GONE_MAX / 2 {
            self.gone_before = mem::take(&mut self.gone);
        }
        self.gone.insert(identity, ());
    }

    /// An object of this identity was found: where identities are inode numbers, another one.
    pub(crate) fn set_found(&mut self, identity: &Identity) {
        self.gone.remove(identity);
        self.gone_before.remove(identity);
    }
}

/// Somebody waits for a walk to meet an identity.
struct Wanted<'a, P: Platform> {
    volume: &'a Volume<P>,
    identity: Identity,
    /// How many walks had begun before.
    begun: u64,
}

impl<P: Platform> Drop for Wanted<'_, P> {
    fn drop(&mut self) {
        let mut searches = lock(&self.volume.searches);
        if let Some(waiting) = searches.wanted.get_mut(&self.identity) {
            *waiting -= 1;
            if *waiting == 0 {
                searches.wanted.remove(&self.identity);
            }
        }
    }
}

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
        let wanted = self.want(identity);
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
                lock(&self.locations).remove(&identity);
                return Err(VolumeError::Stale);
            }
        }
        Err(VolumeError::Stale)
    }

    fn want(&self, identity: Identity) -> Wanted<'_, P> {
        let mut searches = lock(&self.searches);
        *searches.wanted.entry(identity).or_insert(0) += 1;
        Wanted { volume: self, identity, begun: searches.begun }
    }

    /// Whether a walk is enough to say that an object which it did not meet is gone.
    fn says_gone(&self, last: &Walked, wanted: &Wanted<'_, P>, unknown: bool) -> bool {
        let looked_for = last.number > wanted.begun && !last.missed.contains(&wanted.identity);
        // All was seen: what was not there then will hardly be in the next seconds.
        let recent = unknown && self.now().since(last.ended) < WALK_PAUSE_NS && last.sight == self.sight();
        last.complete && (looked_for || recent)
    }

    fn sight(&self) -> Sight {
        Sight { lost: self.moves.lost.load(Ordering::SeqCst), dropped: lock(&self.locations).dropped() }
    }

    /// A directory was moved: a walk may miss what is in it.
    pub(crate) fn carried(&self) {
        self.moves.carried.fetch_add(1, Ordering::SeqCst);
    }

    /// Something has no location any more that a walk gave it.
    pub(crate) fn lost_sight(&self) {
        self.moves.lost.fetch_add(1, Ordering::SeqCst);
    }

    /// Walks until everything is met that is wanted, or to the end: then so that nothing of ours is carried
    /// past, if need be by holding renames off in a second walk.
    async fn walk_for_all(&self, walk: &mut Walk<P>) {
        walk.met.clear();
        let before = walk.last.take();
        for held in [false, true] {
            let number = self.begin_walk();
            let (carried, sight) = (self.moves.carried.load(Ordering::SeqCst), self.sight());
            // Whoever gives up in the middle leaves the pause to the others all the same.
            let begun = Walked { number, ended: self.now(), complete: false, missed: BTreeSet::new(), sight };
            walk.last = Some(begun.clone());
            let moving = if held { Some(self.moving.lock().await) } else { None };
            let mut missed = BTreeSet::new();
            let to_the_end = self.walk_once(&mut walk.met, &mut missed).await;
            let carried_past = moving.is_none() && self.moves.carried.load(Ordering::SeqCst) != carried;
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

    fn begin_walk(&self) -> u64 {
        let mut searches = lock(&self.searches);
        searches.begun += 1;
        searches.begun
    }

    /// Walks the exports, a directory at a time, and remembers where everything is. Holds open what is on
    /// the path to the directory being read, no more. False if it ended early, since all was met.
    async fn walk_once(&self, met: &mut Vec<Arc<Inode<P>>>, missed: &mut BTreeSet<Identity>) -> bool {
        let mut open: BTreeSet<Identity> = lock(&self.searches).wanted.keys().copied().collect();
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
            self.lost_sight();
        }
        self.admit(found?, export, Some(Location { parent, name })).await.ok()
    }

    /// Reads one directory for a walk; one that cannot be read is empty.
    async fn scan(&self, node: Node, identity: Identity, wanted: &BTreeSet<Identity>) -> Level {
        let entries = self.tree.identities(&node).await.unwrap_or_default();
        let mut level = Level { node, identity, directories: Vec::new(), wanted: Vec::new() };
        let mut locations = lock(&self.locations);
        for entry in entries {
            locations.insert(entry.identity, Location { parent: identity, name: entry.name.clone() });
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
