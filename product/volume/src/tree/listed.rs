//! A part of a directory as it was read, with our own changes since.
//!
//! Owns: finding the entries after a cookie, our changes of names to a listing that is cached or being read.
//! Does not own: the order of names (`window`), which directories' parts are cached (`objects::pieces`).
//! Invariants: a cached part has each name of its range that the read found and the server has not removed since. It
//! also has each name that the server has added since. Finding a cookie takes as many steps as the number of entries
//! has bits. Changes are stored beside the entries read, so a change costs no more in a large directory.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::window::{LAST_COOKIE, PlacedEntry, SLACK, Window, position};

/// Most changes beside a part. With more, the part is read anew.
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

    /// Removes a name of the directory. Others keep their cookies.
    fn remove(&mut self, name: &[u8]) {
        let Some(at) = self.find(name) else { return };
        if self.read_at(at).is_some() {
            self.changes.insert(at, None);
        } else {
            self.changes.remove(&at);
        }
    }

    /// The number of entries that it has room for.
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
    /// The last read found more entries than a first window keeps.
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

    /// Keeps the part read since [`KnownListing::begin`], with our changes since then.
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
