//! Finding objects again where the server may open no handles.
//!
//! A handle has an object's identity. Mostly the host opens the object by it. It does not for a server without
//! `CAP_DAC_READ_SEARCH`, which any user may start; for one with `--subtree-check`; on file systems without handles
//! (FUSE, many overlays). Clients of such servers have handles, too, so this module searches for objects by names. On
//! other servers each name costs the other modules one check.
//!
//! The location of each object that a call finds is here, in memory and in a record for the next server. An object that
//! left memory is looked up at its last location. If it is not there, a walk of the exports examines all objects
//! ([`walk`]). What no complete walk has found is gone.
//!
//! Owns: locations of objects, walks, the record of locations; all that the rest of the volume reports of them
//! ([`Search`]).
//! Does not own: opening by identity (the tree), bringing objects into memory (`handles`).
//! Invariants: no location is stored of objects that the tree opens. No error of the host counts as absence.

mod known_locations;
pub(crate) mod location_log;
mod record;
mod walk;

use std::sync::Arc;

use afflux_engine::Platform;
use futures_util::lock::{Mutex as TaskMutex, MutexGuard as TaskGuard};

use crate::objects::inode::Inode;
use crate::objects::table::InodeTable;
use crate::search::known_locations::{KnownLocations, Walk};
use crate::search::location_log::LocationStore;
use crate::tree::directory::{Directory, Location};
use crate::tree::identity::Identity;

/// What the volume reports of objects that may have to be searched for.
pub(crate) struct Search<P: Platform> {
    tree: Arc<dyn Directory>,
    known: KnownLocations,
    exports: Vec<SearchedExport<P>>,
    /// The storage of the record of locations, if any. Held during a write.
    store: TaskMutex<Option<Arc<dyn LocationStore>>>,
}

struct SearchedExport<P: Platform> {
    tag: u16,
    root: Arc<Inode<P>>,
    /// Held during a walk.
    walk: TaskMutex<Walk<P>>,
    /// Held during a rename from below it; a walk takes it for a few lookups.
    moving: TaskMutex<()>,
}

impl<P: Platform> Search<P> {
    /// For exports with these tags and roots.
    pub(crate) fn new(tree: &Arc<dyn Directory>, exports: impl Iterator<Item = (u16, Arc<Inode<P>>)>) -> Self {
        let export =
            |(tag, root)| SearchedExport { tag, root, walk: TaskMutex::default(), moving: TaskMutex::default() };
        Self {
            tree: Arc::clone(tree),
            known: KnownLocations::new(),
            exports: exports.map(export).collect(),
            store: TaskMutex::default(),
        }
    }

    /// Whether an object may have to be searched for.
    fn may_search_for(&self, identity: &Identity) -> bool {
        !self.tree.may_open(identity)
    }

    /// An object came into memory, or has a name again.
    pub(crate) fn note_found(&self, identity: &Identity) {
        if self.may_search_for(identity) {
            self.known.note_found(identity);
        }
    }

    /// An object in memory was found there.
    pub(crate) fn found_at(&self, inode: &Arc<Inode<P>>, location: Location) {
        if self.may_search_for(&inode.identity) {
            self.known.found_at(inode, location);
        }
    }

    /// An object that is not in memory was seen there.
    pub(crate) fn seen_at(&self, identity: &Identity, location: Location) {
        if self.may_search_for(identity) {
            self.known.seen_at(identity, location);
        }
    }

    /// An object is being dropped from memory.
    pub(crate) fn dropped(&self, inode: &Arc<Inode<P>>) {
        if self.may_search_for(&inode.identity) {
            self.known.remember(inode);
        }
    }

    /// An object, in memory or not, has a new name.
    pub(crate) fn named(&self, table: &InodeTable<P>, identity: &Identity, location: Location) {
        if !self.may_search_for(identity) {
            return;
        }
        match table.get(identity) {
            Some(inode) => self.known.found_at(&inode, location),
            // It was dropped, with its location remembered already.
            None => self.known.seen_at(identity, location),
        }
    }

    /// A directory was moved, from below one export to below another, or the same. Comes before its new name, so that
    /// no listing from before replaces the new location.
    pub(crate) fn carried(&self, directory: Identity, from: u16, to: u16) {
        self.known.carry(directory, from, to);
    }

    /// An object has lost one of several names, which may have been the only known one.
    pub(crate) fn unnamed_once(&self) {
        self.known.note_lost_location();
    }

    /// An object has lost its last name: walks need not search for it.
    pub(crate) fn gone(&self, identity: &Identity) {
        if self.may_search_for(identity) {
            self.known.remember_gone(identity);
        }
    }

    /// Excludes walks while a directory below this export moves. None where there are no walks.
    pub(crate) async fn begin_move(&self, directory: &Identity, export: u16) -> Option<TaskGuard<'_, ()>> {
        let export =
            self.exports.iter().find(|searched| searched.tag == export).filter(|_| self.may_search_for(directory))?;
        Some(export.moving.lock().await)
    }
}
