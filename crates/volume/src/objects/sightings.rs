//! What is known of where objects are that are not in memory, for trees that cannot open identities.
//!
//! Owns: where objects were last seen, which are looked for, which are known to be gone, what makes a walk of the
//! exports incomplete.
//! Does not own: walks of the exports and following locations (`handles`). Of trees that open identities nothing
//! is kept here.
//! Invariants: all maps are bounded, but for what is looked for: that is bounded by those who wait. The two locks
//! are short, and neither is taken under the other.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::Platform;

use super::inode::Inode;
use super::location::{Location, Locations};
use super::table::Table;
use crate::lock::lock;
use crate::tree::directory::{Directory, Identified};
use crate::tree::identity::{Identity, IdentityMap};

/// Most objects whose place is remembered after they were dropped, where a tree cannot open
/// identities.
const LOCATIONS_MAX: usize = 262_144;
/// Most objects that are remembered to be gone.
const GONE_MAX: usize = 65_536;

/// While this stays the same, what a walk has met can be found by its location.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Changes of ours that leave something without a location.
    lost: u64,
    /// How often locations had to be dropped.
    dropped: u64,
}

/// Counts changes of ours that matter to walks.
#[derive(Default)]
struct Moves {
    carried: AtomicU64,
    lost: AtomicU64,
}

/// What is looked for, and what need not be.
#[derive(Default)]
struct Searches {
    /// With how many wait for each.
    wanted: IdentityMap<u32>,
    /// How many walks have begun.
    begun: u64,
    /// Objects whose last name we took, or saw taken, in two generations.
    gone: IdentityMap<()>,
    gone_before: IdentityMap<()>,
}

impl Searches {
    fn is_gone(&self, identity: &Identity) -> bool {
        self.gone.contains_key(identity) || self.gone_before.contains_key(identity)
    }

    /// The object's last name is gone. With a kernel's handle its identity never comes back.
    fn set_gone(&mut self, identity: Identity) {
        if self.gone.len() >= GONE_MAX / 2 {
            self.gone_before = mem::take(&mut self.gone);
        }
        self.gone.insert(identity, ());
    }

    /// An object of this identity was found: where identities are inode numbers, another one.
    fn set_found(&mut self, identity: &Identity) {
        self.gone.remove(identity);
        self.gone_before.remove(identity);
    }
}

/// Where objects were seen, and what need not be looked for.
pub(crate) struct Sightings {
    tree: Arc<dyn Directory>,
    locations: Mutex<Locations>,
    searches: Mutex<Searches>,
    /// Counts what makes a walk that has ended, or is being made, incomplete.
    moves: Moves,
}

/// Somebody waits for a walk to meet an identity.
pub(crate) struct Wanted<'a> {
    sightings: &'a Sightings,
    pub(crate) identity: Identity,
    /// How many walks had begun before.
    pub(crate) begun: u64,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let mut searches = lock(&self.sightings.searches);
        if let Some(waiting) = searches.wanted.get_mut(&self.identity) {
            *waiting -= 1;
            if *waiting == 0 {
                searches.wanted.remove(&self.identity);
            }
        }
    }
}

impl Sightings {
    pub(crate) fn new(tree: Arc<dyn Directory>) -> Self {
        Self {
            tree,
            locations: Mutex::new(Locations::new(LOCATIONS_MAX)),
            searches: Mutex::default(),
            moves: Moves::default(),
        }
    }

    /// Where an object was last seen.
    pub(crate) fn location(&self, identity: &Identity) -> Option<Location> {
        lock(&self.locations).get(identity).cloned()
    }

    /// Notes where the entries of a directory lead, as it was just read.
    pub(crate) fn listed(&self, parent: Identity, entries: &[Identified]) {
        let mut locations = lock(&self.locations);
        for entry in entries {
            locations.insert(entry.identity, Location { parent, name: entry.name.clone() });
        }
    }

    /// An object is not where it was seen: so that it is not looked for there.
    pub(crate) fn not_there(&self, identity: &Identity) {
        lock(&self.locations).remove(identity);
    }

    /// Whether an object is known to be gone.
    pub(crate) fn is_gone(&self, identity: &Identity) -> bool {
        lock(&self.searches).is_gone(identity)
    }

    /// Keeps where an object that is being dropped was found.
    pub(crate) fn remember<P: Platform>(&self, inode: &Arc<Inode<P>>) {
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
    pub(crate) fn relocate<P: Platform>(&self, table: &Table<P>, identity: &Identity, location: Location) {
        if self.tree.opens(identity) {
            return;
        }
        match table.get(identity) {
            Some(inode) => inode.state().location = Some(location),
            // Dropped, and what it was known by is remembered already.
            None => lock(&self.locations).insert(*identity, location),
        }
    }

    /// A directory was moved: a walk may miss what is in it.
    pub(crate) fn carried(&self) {
        self.moves.carried.fetch_add(1, Ordering::SeqCst);
    }

    /// How often directories were moved.
    pub(crate) fn carried_count(&self) -> u64 {
        self.moves.carried.load(Ordering::SeqCst)
    }

    /// Something has no location any more that a walk gave it.
    pub(crate) fn lost_sight(&self) {
        self.moves.lost.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn sight(&self) -> Sight {
        Sight { lost: self.moves.lost.load(Ordering::SeqCst), dropped: lock(&self.locations).dropped() }
    }

    /// Has walks look for an object until what is given is dropped.
    pub(crate) fn want(&self, identity: Identity) -> Wanted<'_> {
        let mut searches = lock(&self.searches);
        *searches.wanted.entry(identity).or_insert(0) += 1;
        Wanted { sightings: self, identity, begun: searches.begun }
    }

    /// What is looked for at this moment.
    pub(crate) fn wanted(&self) -> BTreeSet<Identity> {
        lock(&self.searches).wanted.keys().copied().collect()
    }

    /// Counts a walk that begins, and gives its number.
    pub(crate) fn begin_walk(&self) -> u64 {
        let mut searches = lock(&self.searches);
        searches.begun += 1;
        searches.begun
    }
}
