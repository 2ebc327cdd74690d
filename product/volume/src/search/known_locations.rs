//! Known locations of objects that are not in memory, and the searches for others.
//!
//! Owns: a bounded map from identity to the directory and name where the object was found last; the objects wanted and
//! those known to be gone; the news for the record of locations. Also: the directories that were moved past a walk of
//! the exports, and the results of each export's last walk.
//! Does not own: walks of the exports and following locations (`walk`), which compare identities; whether the tree
//! opens an object (`search`).
//! Invariants: all maps are bounded; the number of waiters bounds the wanted objects. The four locks are short, and
//! none is taken under another. The objects that a walk found stay in memory until the next walk begins.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};

use crate::lock::lock;
use crate::objects::inode::Inode;
use crate::objects::table::InodeTable;
use crate::search::location_log::{LocationEntry, LocationLog, LogWrite, Read};
use crate::tree::directory::{Identified, Location};
use crate::tree::identity::{Identity, IdentityMap};

/// Most locations that are remembered after their objects were dropped, if a tree cannot open identities.
const LOCATIONS_MAX: usize = 262_144;
/// Most objects that are remembered to be gone.
const GONE_MAX: usize = 65_536;

/// While this value is unchanged, all objects that a walk has found can be found by their locations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocationEpoch {
    /// Changes of ours after which an object has no known location.
    lost: u64,
    /// How often locations had to be dropped.
    dropped: u64,
}

/// Most directories that are remembered to have been moved.
const CARRIED_MAX: usize = 1024;

/// The directories that we moved lately: a walk may have missed their contents.
#[derive(Default)]
struct Carried {
    count: u64,
    /// To another export.
    crossed: u64,
    /// Moves up to this number may be forgotten.
    forgotten: u64,
    /// The number of each directory's last move, and the export that it is below since.
    last: IdentityMap<(u64, u16)>,
}

impl Carried {
    fn after(&self, count: u64, is_one: impl Fn(u16) -> bool) -> Option<BTreeSet<Identity>> {
        let moved = self.last.iter().filter(|(_, (number, below))| *number > count && is_one(*below));
        (count >= self.forgotten).then(|| moved.map(|(directory, _)| *directory).collect())
    }
}

/// The wanted objects, and those known to be gone.
#[derive(Default)]
struct Searches {
    /// The number of waiters for each.
    wanted: IdentityMap<u32>,
    /// The number of walks begun.
    begun: u64,
    /// Objects that are known to have lost their last name, in two generations.
    gone: IdentityMap<()>,
    gone_before: IdentityMap<()>,
}

impl Searches {
    fn is_gone(&self, identity: &Identity) -> bool {
        self.gone.contains_key(identity) || self.gone_before.contains_key(identity)
    }

    /// Records that the object has lost its last name. With a kernel's handle, its identity never comes back.
    fn set_gone(&mut self, identity: Identity) {
        if self.gone.len() >= GONE_MAX / 2 {
            self.gone_before = mem::take(&mut self.gone);
        }
        self.gone.insert(identity, ());
    }

    /// An object with this identity was found; with inode numbers as identities, it is a new object.
    fn set_found(&mut self, identity: &Identity) {
        self.gone.remove(identity);
        self.gone_before.remove(identity);
    }
}

/// The known locations of objects, and the searches for others.
pub(crate) struct KnownLocations {
    locations: Mutex<Locations>,
    searches: Mutex<Searches>,
    /// The news for the record of locations, if there is one.
    log: Mutex<Option<LocationLog>>,
    carried: Mutex<Carried>,
    /// Counts changes of ours after which an object has no known location.
    lost: AtomicU64,
}

/// A caller's wait for a walk to meet an identity.
pub(crate) struct WantedObject<'a> {
    known_locations: &'a KnownLocations,
    pub(crate) identity: Identity,
    /// The number of walks begun before.
    pub(crate) begun: u64,
}

impl Drop for WantedObject<'_> {
    fn drop(&mut self) {
        let mut searches = lock(&self.known_locations.searches);
        if let Some(waiting) = searches.wanted.get_mut(&self.identity) {
            *waiting -= 1;
            if *waiting == 0 {
                searches.wanted.remove(&self.identity);
            }
        }
    }
}

impl KnownLocations {
    pub(crate) fn new() -> Self {
        Self {
            locations: Mutex::new(Locations::new(LOCATIONS_MAX)),
            searches: Mutex::default(),
            log: Mutex::default(),
            carried: Mutex::default(),
            lost: AtomicU64::new(0),
        }
    }

    /// The last location of an object.
    pub(crate) fn location(&self, identity: &Identity) -> Option<Location> {
        lock(&self.locations).get(identity).cloned()
    }

    /// Takes over the entries of a record, and maintains the record from now on.
    pub(crate) fn recall(&self, read: Read) {
        let log = LocationLog::behind(read.entries.len() as u64, read.whole);
        for entry in read.entries {
            match entry {
                LocationEntry::At(identity, location) => {
                    lock(&self.searches).set_found(&identity);
                    lock(&self.locations).insert(identity, location);
                }
                LocationEntry::Gone(identity) => {
                    lock(&self.locations).remove(&identity);
                    lock(&self.searches).set_gone(identity);
                }
            }
        }
        *lock(&self.log) = Some(log);
    }

    fn record(&self, entry: &LocationEntry) {
        if let Some(log) = lock(&self.log).as_mut() {
            log.add(entry);
        }
    }

    /// The next write of the record. If that is all of it, the record is begun anew.
    pub(crate) fn locations_due<P: Platform>(&self, table: &InodeTable<P>) -> LogWrite {
        let known = (lock(&self.locations).len() + table.len()) as u64;
        let mut log = lock(&self.log);
        let Some(log) = log.as_mut() else { return LogWrite::Nothing };
        let due = log.take(known);
        if matches!(due, LogWrite::All) {
            log.begins_anew(known);
        }
        due
    }

    /// The last write failed.
    pub(crate) fn locations_not_written(&self) {
        if let Some(log) = lock(&self.log).as_mut() {
            log.failed();
        }
    }

    /// All entries for a new record.
    pub(crate) fn all_entries<P: Platform>(&self, table: &InodeTable<P>) -> Vec<LocationEntry> {
        let gone: Vec<Identity> = {
            let searches = lock(&self.searches);
            searches.gone_before.keys().chain(searches.gone.keys()).copied().collect()
        };
        let mut entries: Vec<LocationEntry> = gone.into_iter().map(LocationEntry::Gone).collect();
        {
            let locations = lock(&self.locations);
            entries.extend(locations.all().map(|(identity, location)| LocationEntry::At(*identity, location.clone())));
        }
        for inode in table.all() {
            let location = inode.state().location.clone();
            entries.extend(location.map(|location| LocationEntry::At(inode.identity, location)));
        }
        entries
    }

    /// An object in memory was found there.
    pub(crate) fn found_at<P: Platform>(&self, inode: &Arc<Inode<P>>, location: Location) {
        let known = inode.state().location.replace(location.clone());
        let known = known.or_else(|| self.location(&inode.identity));
        if known.as_ref() != Some(&location) {
            self.record(&LocationEntry::At(inode.identity, location));
        }
    }

    /// An object that is not in memory was seen there.
    pub(crate) fn seen_at(&self, identity: &Identity, location: Location) {
        lock(&self.searches).set_found(identity);
        if self.location(identity).as_ref() != Some(&location) {
            self.record(&LocationEntry::At(*identity, location.clone()));
            lock(&self.locations).insert(*identity, location);
        }
    }

    /// Records the locations of a directory's entries after a read of it, but not of directories that we moved since
    /// its begin, after this many moves.
    pub(crate) fn listed(&self, parent: Identity, entries: &[Identified], moves: u64) {
        let carried = lock(&self.carried).after(moves, |_| true);
        let mut locations = lock(&self.locations);
        let is_carried = |entry: &&Identified| carried.as_ref().is_none_or(|carried| carried.contains(&entry.identity));
        for entry in entries.iter().filter(|entry| !(entry.directory && is_carried(entry))) {
            locations.insert(entry.identity, Location { parent, name: entry.name.clone() });
        }
    }

    /// Removes an object's location, since the object is not there.
    pub(crate) fn remove_location(&self, identity: &Identity) {
        lock(&self.locations).remove(identity);
    }

    /// Whether an object is known to be gone.
    pub(crate) fn is_gone(&self, identity: &Identity) -> bool {
        lock(&self.searches).is_gone(identity)
    }

    /// Remembers the location of an object that is being dropped.
    pub(crate) fn remember<P: Platform>(&self, inode: &Arc<Inode<P>>) {
        match inode.state().location.take() {
            Some(location) => lock(&self.locations).insert(inode.identity, location),
            None => self.note_lost_location(),
        }
    }

    /// Records the loss of an object's last name: walks need not search for the object.
    pub(crate) fn remember_gone(&self, identity: &Identity) {
        self.remove_location(identity);
        lock(&self.searches).set_gone(*identity);
        self.record(&LocationEntry::Gone(*identity));
    }

    /// An object came into memory.
    pub(crate) fn note_found(&self, identity: &Identity) {
        lock(&self.searches).set_found(identity);
    }

    /// A directory was moved, from below one export to below another, or the same.
    pub(crate) fn carry(&self, directory: Identity, from: u16, to: u16) {
        let mut carried = lock(&self.carried);
        carried.count += 1;
        carried.crossed += u64::from(from != to);
        let number = carried.count;
        if carried.last.len() == CARRIED_MAX && !carried.last.contains_key(&directory) {
            carried.forgotten = number - 1;
            carried.last.clear();
        }
        carried.last.insert(directory, (number, to));
    }

    /// How often directories were moved.
    pub(crate) fn carried_count(&self) -> u64 {
        lock(&self.carried).count
    }

    /// How often directories were moved to another export.
    pub(crate) fn crossed_count(&self) -> u64 {
        lock(&self.carried).crossed
    }

    /// The directories that were moved after this many moves, and are below an export since. `None` if they were too
    /// many to remember.
    pub(crate) fn carried_since(&self, count: u64, export: u16) -> Option<BTreeSet<Identity>> {
        lock(&self.carried).after(count, |below| below == export)
    }

    /// An object has lost a location that a walk gave it.
    pub(crate) fn note_lost_location(&self) {
        self.lost.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn sight(&self) -> LocationEpoch {
        LocationEpoch { lost: self.lost.load(Ordering::SeqCst), dropped: lock(&self.locations).dropped() }
    }

    /// Makes walks search for an object until the returned value is dropped.
    pub(crate) fn want(&self, identity: Identity) -> WantedObject<'_> {
        let mut searches = lock(&self.searches);
        *searches.wanted.entry(identity).or_insert(0) += 1;
        WantedObject { known_locations: self, identity, begun: searches.begun }
    }

    /// The objects wanted at this moment.
    pub(crate) fn wanted(&self) -> BTreeSet<Identity> {
        lock(&self.searches).wanted.keys().copied().collect()
    }

    /// Counts a walk that begins, and returns its index.
    pub(crate) fn begin_walk(&self) -> u64 {
        let mut searches = lock(&self.searches);
        searches.begun += 1;
        searches.begun
    }
}

/// Locations by identity, in two generations: when the young one is full the old one is dropped.
pub(crate) struct Locations {
    entries_max: usize,
    young: IdentityMap<Location>,
    old: IdentityMap<Location>,
    dropped: u64,
}

impl Locations {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries_max: entries_max.max(2), young: IdentityMap::default(), old: IdentityMap::default(), dropped: 0 }
    }

    pub(crate) fn insert(&mut self, identity: Identity, location: Location) {
        if self.young.len() >= self.entries_max / 2 && !self.young.contains_key(&identity) {
            let oldest = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.dropped += u64::from(!oldest.is_empty());
        }
        self.young.insert(identity, location);
    }

    /// The object is gone.
    pub(crate) fn remove(&mut self, identity: &Identity) {
        self.young.remove(identity);
        self.old.remove(identity);
    }

    /// How often locations were dropped because there were too many.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// All locations. An object may occur twice; its older location comes first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Identity, &Location)> {
        self.old.iter().chain(&self.young)
    }

    /// An upper bound on their number.
    pub(crate) fn len(&self) -> usize {
        self.old.len() + self.young.len()
    }

    pub(crate) fn get(&self, identity: &Identity) -> Option<&Location> {
        self.young.get(identity).or_else(|| self.old.get(identity))
    }
}

/// The last walk that was begun.
pub(crate) struct Walk<P: Platform> {
    pub(crate) last: Option<Walked>,
    /// The wanted objects that were found: held in memory for their waiters.
    pub(crate) found: Vec<Arc<Inode<P>>>,
}

impl<P: Platform> Default for Walk<P> {
    fn default() -> Self {
        Self { last: None, found: Vec::new() }
    }
}

#[derive(Clone)]
pub(crate) struct Walked {
    /// The index of the walk: objects wanted before this walk were looked for.
    pub(crate) index: u64,
    pub(crate) ended: Nanos,
    /// It reached the end, and saw everything, also what a rename of ours carried past it.
    pub(crate) complete: bool,
    /// Wanted and seen, but already gone from there.
    pub(crate) missed: BTreeSet<Identity>,
    /// From before it began.
    pub(crate) sight: LocationEpoch,
    /// Directories that were carried to another export before it began.
    pub(crate) crossed: u64,
}

#[cfg(test)]
mod tests;
