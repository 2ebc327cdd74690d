//! Reading a directory in pieces: cookies that outlive changes, restarts and our memory, and the pieces with our own
//! changes since.
//!
//! Owns: the position of an entry in a listing, gathering a part of a directory, the sizes of parts; finding the
//! entries after a cookie, our changes of names to a part that is cached or being read.
//! Does not own: reading the directory (the tree), which directories' parts are cached (`objects::directory_cache`),
//! handles and attributes of entries (`names::list`).
//! Invariants: an entry's cookie depends on its name alone, except for the rare names that hash alike, which follow
//! each other. So a listing goes on after the same cookie, even if entries came, went or were forgotten. It never
//! starts again, never loops and never skips a name that was there all the time. Cookies are below 2^31. A cached part
//! has each name of its range that the read found and the server has not removed since, and each name that the server
//! has added since. Finding a cookie takes as many steps as the number of entries has bits. Changes are stored next to
//! the entries read, so a change costs no more in a large directory.
//!
//! More than [`SLACK`] names of one hash break this in their own directory. A listing that goes on behind the last of
//! these names skips the others. Such names cost an attacker some 10^11 hashes.

use std::collections::BTreeMap;
use std::hash::Hasher;

use bytes::Bytes;
use siphasher::sip::SipHasher13;

use crate::error::VolumeError;

/// The cookies of "." and "..".
pub(crate) const SELF_COOKIE: u64 = 1;
pub(crate) const PARENT_COOKIE: u64 = 2;

/// Cookies of names start here.
const FIRST_COOKIE: u64 = 3;
/// Names hash to this many positions.
const POSITIONS: u64 = (1 << 31) - FIRST_COOKIE - SLACK;
/// How far names that hash alike may push each other.
pub(super) const SLACK: u64 = 64;
/// The largest cookie.
pub(crate) const LAST_COOKIE: u64 = (1 << 31) - 1;

/// Most entries of a window at first. Most directories have fewer.
pub(crate) const WINDOW_ENTRIES_MAX: usize = 65_536;
/// Most entries of the window of a larger directory. Beyond them the directory is read again for the next entries.
pub(crate) const LARGE_WINDOW_ENTRIES_MAX: usize = 524_288;

/// The position of a name, before names that hash alike are moved apart. Unkeyed: it must be the same in every run.
pub(super) fn position(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    hasher.write(name);
    FIRST_COOKIE + hasher.finish() % POSITIONS
}

/// The entry's object has to be looked at for its number.
const ASKED: u16 = u16::MAX;

/// An entry as the host lists it. The names of all entries are in one piece of memory next to them.
#[derive(Clone, Copy)]
pub(super) struct PlacedEntry {
    /// A position; once the window is complete, the cookie.
    pub(super) at: u32,
    name_at: u32,
    name_len: u16,
    /// The number is one of this file system: 0 for the directory's, else one more than an index of `elsewhere`, or
    /// [`ASKED`].
    of: u16,
    pub(super) fileid: u64,
}

impl PlacedEntry {
    pub(super) fn name(self, names: &[u8]) -> &[u8] {
        &names[self.name_at as usize..][..self.name_len as usize]
    }
}

/// The part of a directory after a cookie, gathered entry by entry in any order.
pub struct Window {
    pub(super) after: u64,
    /// The number of entries that are held in the end.
    held_max: usize,
    /// Up to half as many again are gathered before the surplus is dropped.
    pub(super) entries: Vec<PlacedEntry>,
    pub(super) names: Vec<u8>,
    /// No entry beyond this one will be held.
    bound: u64,
    cut: bool,
    complete: bool,
    doubtful: bool,
    /// File systems of entries that are not on the directory's.
    elsewhere: Vec<u64>,
}

impl Window {
    /// The position of a name in the order of listings: below 2^31, the same in every run. A tree with its entries in
    /// this order reads a window as one range.
    pub fn position(name: &[u8]) -> u64 {
        position(name)
    }

    /// The first position with entries for this window.
    pub fn first_position(&self) -> u64 {
        self.after.saturating_sub(SLACK)
    }

    /// The last position with entries for this window. It moves down while the window fills.
    pub fn last_position(&self) -> u64 {
        self.bound.min(LAST_COOKIE)
    }

    pub(crate) fn new(after: u64) -> Self {
        Self::with_bound(after, WINDOW_ENTRIES_MAX)
    }

    /// As `new`, for a directory with more entries than that holds.
    pub(crate) fn large(after: u64) -> Self {
        Self::with_bound(after, LARGE_WINDOW_ENTRIES_MAX)
    }

    /// As `new`, with another bound on the entries.
    pub(crate) fn with_bound(after: u64, entries_max: usize) -> Self {
        // Names just before the cookie are held, too, since they may push later ones.
        let held_max = entries_max + 2 * SLACK as usize;
        Self {
            after,
            held_max,
            entries: Vec::new(),
            names: Vec::new(),
            bound: u64::MAX,
            cut: false,
            complete: false,
            doubtful: false,
            elsewhere: Vec::new(),
        }
    }

    /// Takes an entry if it is one of the next, with its object's number on the directory's file system. Not for "."
    /// and "..".
    pub fn offer(&mut self, name: &[u8], fileid: u64) {
        self.offer_of(name, fileid, 0);
    }

    /// As [`Window::offer`], for an entry whose object may be on another file system, or have another number than the
    /// listed one. [`Window::ask`] finds these out.
    pub fn offer_unsure(&mut self, name: &[u8], fileid: u64) {
        self.offer_of(name, fileid, ASKED);
    }

    fn offer_of(&mut self, name: &[u8], fileid: u64, of: u16) {
        let at = position(name);
        if at + SLACK < self.after || at > self.bound {
            return;
        }
        let (name_at, name_len) = (self.names.len() as u32, name.len() as u16);
        self.names.extend_from_slice(name);
        self.entries.push(PlacedEntry { at: at as u32, name_at, name_len, of, fileid });
        if self.entries.len() > self.held_max + self.held_max / 2 {
            self.keep_next();
            self.pack_names();
        }
    }

    /// Records that the directory may have changed, or may have been elsewhere, during the read. The volume then looks
    /// names up before it gives them out.
    pub fn doubt(&mut self) {
        self.doubtful = true;
    }

    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Whether the directory had more entries than are held.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut || self.entries.len() > self.held_max
    }

    /// Drops the surplus entries.
    fn keep_next(&mut self) {
        if self.entries.len() > self.held_max {
            let names = &self.names;
            let order =
                |one: &PlacedEntry, other: &PlacedEntry| (one.at, one.name(names)).cmp(&(other.at, other.name(names)));
            let (_, last, _) = self.entries.select_nth_unstable_by(self.held_max - 1, order);
            (self.bound, self.cut) = (last.at.into(), true);
            self.entries.truncate(self.held_max);
        }
    }

    /// Drops the names of dropped entries.
    fn pack_names(&mut self) {
        let mut names = Vec::new();
        for entry in &mut self.entries {
            let name_at = names.len() as u32;
            names.extend_from_slice(entry.name(&self.names));
            entry.name_at = name_at;
        }
        self.names = names;
    }

    /// Completes the window, and asks `look` about each unsure entry in it: the id of its object's file system, unless
    /// that is the directory's, and its number there. The listed number stays where there is no answer.
    pub fn ask(&mut self, look: impl Fn(&[u8]) -> Option<(Option<u64>, u64)>) {
        self.complete();
        for entry in self.entries.iter_mut().filter(|entry| entry.of == ASKED) {
            entry.of = 0;
            let Some((elsewhere, fileid)) = look(entry.name(&self.names)) else { continue };
            entry.fileid = fileid;
            if let Some(fsid) = elsewhere {
                let known = self.elsewhere.iter().position(|known| *known == fsid);
                let at = known.unwrap_or_else(|| {
                    self.elsewhere.push(fsid);
                    self.elsewhere.len() - 1
                });
                entry.of = (at + 1) as u16;
            }
        }
    }

    /// Completes the window, and gives each entry the number that `fileid` makes of the id of its file system, unless
    /// that is the directory's, and of its number there.
    pub(crate) fn assign_fileids(
        &mut self,
        fileid: impl Fn(Option<u64>, u64) -> Result<u64, VolumeError>,
    ) -> Result<(), VolumeError> {
        self.complete();
        for entry in &mut self.entries {
            let elsewhere = usize::from(entry.of).checked_sub(1).and_then(|at| self.elsewhere.get(at));
            entry.fileid = fileid(elsewhere.copied(), entry.fileid)?;
        }
        Ok(())
    }

    /// After the last entry: gives the entries their cookies, in order. A tree calls it on a thread that may take a
    /// while.
    pub fn complete(&mut self) {
        if self.complete {
            return;
        }
        self.complete = true;
        self.keep_next();
        let names = &self.names;
        self.entries.sort_unstable_by(|one, other| (one.at, one.name(names)).cmp(&(other.at, other.name(names))));
        let mut next = 0;
        for entry in &mut self.entries {
            entry.at = entry.at.max(next);
            next = entry.at + 1;
        }
        let old = self.entries.partition_point(|entry| u64::from(entry.at) <= self.after);
        self.entries.drain(..old);
        self.pack_names();
        self.entries.shrink_to_fit();
        self.names.shrink_to_fit();
    }
}

/// Most changes next to a part. With more, the part is read anew.
const CHANGES_MAX: usize = 4_096;

/// One entry of a piece of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListedEntry {
    pub(crate) cookie: u64,
    pub(crate) name: Bytes,
    pub(crate) fileid: u64,
}

/// The entries after a cookie.
pub(crate) struct ListedPiece {
    /// The entries, in their order.
    pub(crate) entries: Vec<ListedEntry>,
    /// No more entries follow.
    pub(crate) last: bool,
    /// Names must be looked up before they are given out.
    pub(crate) doubtful: bool,
}

/// A sealed window: every entry with a cookie above `after`, up to `upto`.
pub(crate) struct Listed {
    after: u64,
    upto: u64,
    doubtful: bool,
    entries: Vec<PlacedEntry>,
    names: Vec<u8>,
    /// The new entry at a cookie, or none after a removal.
    changes: BTreeMap<u64, Option<(Bytes, u64)>>,
}

impl Listed {
    pub(crate) fn of(mut window: Window) -> Self {
        // Does nothing if the tree has done it.
        window.complete();
        let last = window.entries.last().map_or(window.after, |last| last.at.into());
        let upto = if window.is_cut() { last } else { u64::MAX };
        let (after, doubtful) = (window.after, window.is_doubtful());
        Self { after, upto, doubtful, entries: window.entries, names: window.names, changes: BTreeMap::new() }
    }

    /// Whether the entries after `cookie` are known.
    pub(crate) fn has_after(&self, cookie: u64) -> bool {
        self.after <= cookie && (cookie < self.upto || self.upto == u64::MAX)
    }

    /// The entries after `cookie`, at most `entries_max`.
    pub(crate) fn take(&self, cookie: u64, entries_max: usize) -> ListedPiece {
        let start = self.entries.partition_point(|entry| u64::from(entry.at) <= cookie);
        let mut read = self.entries[start..].iter().peekable();
        let mut changed = self.changes.range(cookie + 1..).peekable();
        let (mut entries, mut more) = (Vec::new(), false);
        loop {
            let (next_read, next_changed) =
                (read.peek().map(|entry| u64::from(entry.at)), changed.peek().map(|(at, _)| **at));
            let entry = match (next_read, next_changed) {
                (None, None) => break,
                (Some(at), changed_at) if changed_at.is_none_or(|changed_at| at < changed_at) => {
                    read.next().map(|entry| self.read_entry(*entry))
                }
                (at, changed_at) => {
                    if at == changed_at {
                        read.next();
                    }
                    changed.next().and_then(|(at, now)| {
                        let (name, fileid) = now.as_ref()?;
                        Some(ListedEntry { cookie: *at, name: name.clone(), fileid: *fileid })
                    })
                }
            };
            let Some(entry) = entry else { continue };
            if entries.len() == entries_max {
                more = true;
                break;
            }
            entries.push(entry);
        }
        ListedPiece { entries, last: !more && self.upto == u64::MAX, doubtful: self.doubtful }
    }

    fn read_entry(&self, entry: PlacedEntry) -> ListedEntry {
        let name = Bytes::copy_from_slice(entry.name(&self.names));
        ListedEntry { cookie: entry.at.into(), name, fileid: entry.fileid }
    }

    /// The name at a cookie now.
    fn name_at(&self, at: u64) -> Option<&[u8]> {
        match self.changes.get(&at) {
            Some(changed) => changed.as_ref().map(|(name, _)| &**name),
            None => self.read_at(at).map(|entry| entry.name(&self.names)),
        }
    }

    /// The entry at a cookie when the part was read.
    fn read_at(&self, at: u64) -> Option<PlacedEntry> {
        let found = self.entries.binary_search_by_key(&at, |entry| entry.at.into());
        found.ok().map(|index| self.entries[index])
    }

    /// The cookie of a name.
    fn find(&self, name: &[u8]) -> Option<u64> {
        let position = position(name);
        (position..=position + SLACK).find(|at| self.name_at(*at) == Some(name))
    }

    /// Adds a new name of the directory.
    fn insert(&mut self, name: &Bytes, fileid: u64) {
        let free = || (position(name)..=LAST_COOKIE).find(|at| self.name_at(*at).is_none());
        let Some(at) = self.find(name).or_else(free) else { return };
        if self.after < at && at <= self.upto {
            self.changes.insert(at, Some((name.clone(), fileid)));
        }
    }

    /// Removes a name of the directory. The cookies of others stay the same.
    fn remove(&mut self, name: &[u8]) {
        let Some(at) = self.find(name) else { return };
        if self.read_at(at).is_some() {
            self.changes.insert(at, None);
        } else {
            self.changes.remove(&at);
        }
    }

    /// The number of entries that it stores.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The cached listing of a directory, and our changes during a read of it.
#[derive(Default)]
pub(crate) struct KnownListing {
    cached: Option<Listed>,
    /// The number of the read that the cached part is from.
    cached_from: u64,
    /// The number of reads that have begun.
    reads: u64,
    /// The last read found more entries than a first window holds.
    large: bool,
    /// Our changes since the current read began: added names with their objects, and removed names. `None` if there is
    /// no read, or if its result must not be cached.
    since: Option<Vec<(Bytes, Option<u64>)>>,
}

impl KnownListing {
    /// The number of reads that have begun.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    /// The cached part, if its read began after the first `reads` ones.
    pub(crate) fn cached_after(&self, reads: u64) -> Option<&Listed> {
        self.cached.as_ref().filter(|_| self.cached_from > reads)
    }

    /// Whether a first window was too small for the directory.
    pub(crate) fn is_large(&self) -> bool {
        self.large
    }

    /// A read has found the directory to be large, or not.
    pub(crate) fn note_large(&mut self, large: bool) {
        self.large = large;
    }

    /// Adds a new name of the directory.
    pub(crate) fn insert(&mut self, name: &Bytes, fileid: u64) {
        self.change(name, Some(fileid));
    }

    /// Removes a name of the directory.
    pub(crate) fn remove(&mut self, name: &Bytes) {
        self.change(name, None);
    }

    fn change(&mut self, name: &Bytes, fileid: Option<u64>) {
        if let Some(cached) = &mut self.cached {
            apply(cached, name, fileid);
        }
        self.cached.take_if(|cached| cached.changes.len() > CHANGES_MAX);
        if let Some(since) = &mut self.since {
            since.push((name.clone(), fileid));
        }
        self.since.take_if(|since| since.len() > CHANGES_MAX);
    }

    /// Others changed the directory: the cached part is void, and so is a current read.
    pub(crate) fn forget(&mut self) {
        (self.cached, self.since) = (None, None);
    }

    /// Drops the cached part.
    pub(crate) fn drop_cached(&mut self) {
        self.cached = None;
    }

    /// The directory is about to be read.
    pub(crate) fn begin(&mut self) {
        self.reads += 1;
        self.since = Some(Vec::new());
    }

    /// Caches the part read since [`KnownListing::begin`], with our changes since then.
    pub(crate) fn keep(&mut self, mut listed: Listed) {
        let Some(since) = self.since.take() else { return };
        for (name, fileid) in &since {
            apply(&mut listed, name, *fileid);
        }
        (self.cached, self.cached_from) = (Some(listed), self.reads);
    }
}

fn apply(listed: &mut Listed, name: &Bytes, fileid: Option<u64>) {
    match fileid {
        Some(fileid) => listed.insert(name, fileid),
        None => listed.remove(name),
    }
}

#[cfg(test)]
mod tests;
