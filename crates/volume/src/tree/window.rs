//! Reading a directory in pieces: cookies that outlive changes, restarts and our memory.
//!
//! Owns: where an entry stands in a listing, the window of a directory that is kept, its bounds.
//! Does not own: reading the directory (the tree), handles and attributes of entries (`names::list`).
//! Invariants: an entry's cookie depends on its name alone (but for the rare names that hash alike,
//! which stand one after the other), so a listing goes on after the same cookie whatever came, went
//! or was forgotten: it never starts again, never loops and never passes over a name that was there
//! all the time. Cookies are below 2^31.

use std::hash::Hasher;

use bytes::Bytes;
use siphasher::sip::SipHasher13;

/// The cookies of "." and "..".
pub(crate) const SELF_COOKIE: u64 = 1;
pub(crate) const PARENT_COOKIE: u64 = 2;

/// Cookies of names start here.
const FIRST_COOKIE: u64 = 3;
/// Names hash to this many places.
const PLACES: u64 = (1 << 31) - FIRST_COOKIE - SLACK;
/// How far names that hash alike may push each other.
const SLACK: u64 = 64;
/// No cookie is larger.
pub(crate) const LAST_COOKIE: u64 = (1 << 31) - 1;

/// Most entries that a window keeps: a larger directory is read again for the next ones.
pub(crate) const WINDOW_ENTRIES_MAX: usize = 65_536;

/// Where a name stands, before names that hash alike are told apart. Unkeyed: it must be the same
/// in every run.
fn place(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    hasher.write(name);
    FIRST_COOKIE + hasher.finish() % PLACES
}

/// An entry as the host lists it. Ordered as in a listing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Placed {
    /// A place; once the window is sealed, the cookie.
    at: u64,
    name: Bytes,
    fileid: u64,
}

/// The part of a directory after a cookie, gathered entry by entry in any order.
pub struct Window {
    after: u64,
    /// How many entries are kept in the end.
    kept_max: usize,
    /// Half as many again come together before those that are too many go.
    entries: Vec<Placed>,
    /// None that stands behind this one will be kept.
    bound: u64,
    cut: bool,
    /// All names up to here were offered, whether or not they are kept.
    seen_upto: u64,
}

impl Window {
    pub(crate) fn new(after: u64) -> Self {
        Self::with_bound(after, WINDOW_ENTRIES_MAX)
    }

    /// As `new`, with another bound on what is kept.
    pub(crate) fn with_bound(after: u64, entries_max: usize) -> Self {
        // Names just before the cookie are kept too, to see whom they push.
        let kept_max = entries_max + 2 * SLACK as usize;
        Self { after, kept_max, entries: Vec::new(), bound: u64::MAX, cut: false, seen_upto: after }
    }

    /// Takes an entry if it is one of the next. Neither "." nor "..".
    pub fn offer(&mut self, name: &[u8], fileid: u64) {
        let at = place(name);
        if at + SLACK < self.after || at > self.bound {
            return;
        }
        self.entries.push(Placed { at, name: Bytes::copy_from_slice(name), fileid });
        if self.entries.len() > self.kept_max + self.kept_max / 2 {
            self.keep_next();
        }
    }

    /// Lets go of those that are too many.
    fn keep_next(&mut self) {
        if self.entries.len() > self.kept_max {
            let (_, last, _) = self.entries.select_nth_unstable(self.kept_max - 1);
            (self.bound, self.cut) = (last.at, true);
            self.entries.truncate(self.kept_max);
        }
    }

    /// All were offered: puts them in order. For a tree to call where that may take a while.
    pub fn complete(&mut self) {
        self.keep_next();
        self.entries.sort_unstable();
    }

    /// Lets go of names that are not to be told. To be called once all were offered.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&[u8]) -> bool) {
        self.complete();
        self.seen_upto = self.entries.last().map_or(self.after, |last| last.at.max(self.after));
        self.entries.retain(|placed| is_kept(&placed.name));
    }

    pub(crate) fn seal(mut self) -> Listed {
        // Little to do where the tree has done it.
        self.complete();
        let mut entries = self.entries;
        let mut next = 0;
        for entry in &mut entries {
            entry.at = entry.at.max(next);
            next = entry.at + 1;
        }
        let old = entries.partition_point(|entry| entry.at <= self.after);
        entries.drain(..old);
        let last = entries.last().map_or(self.seen_upto, |last| last.at.max(self.seen_upto));
        let upto = if self.cut { last } else { u64::MAX };
        Listed { after: self.after, upto, entries }
    }
}

/// A sealed window: every entry with a cookie above `after`, up to `upto`.
pub(crate) struct Listed {
    after: u64,
    upto: u64,
    entries: Vec<Placed>,
}

/// One entry of a piece of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) cookie: u64,
    pub(crate) name: Bytes,
    pub(crate) fileid: u64,
}

impl Listed {
    /// Whether what follows `cookie` is known.
    pub(crate) fn covers(&self, cookie: u64) -> bool {
        self.after <= cookie && (cookie < self.upto || self.upto == u64::MAX)
    }

    /// Whether there are more names than were kept, none of them among these, and from which cookie on.
    pub(crate) fn goes_on(&self, cookie: u64) -> Option<u64> {
        let none_here = self.entries.last().is_none_or(|last| last.at <= cookie);
        (none_here && self.upto > cookie && self.upto <= LAST_COOKIE).then_some(self.upto)
    }

    /// The entries after `cookie`, at most `entries_max`, and whether no more follow them.
    pub(crate) fn take(&self, cookie: u64, entries_max: usize) -> (Vec<Entry>, bool) {
        let start = self.entries.partition_point(|entry| entry.at <= cookie);
        let rest = &self.entries[start..];
        let taken = rest.iter().take(entries_max);
        let entries = taken.map(|entry| Entry { cookie: entry.at, name: entry.name.clone(), fileid: entry.fileid });
        (entries.collect(), rest.len() <= entries_max && self.upto == u64::MAX)
    }

    /// A name was added to the directory.
    pub(crate) fn insert(&mut self, name: &Bytes, fileid: u64) {
        let mut at = place(name);
        let mut index = self.entries.partition_point(|entry| entry.at < at);
        while self.entries.get(index).is_some_and(|entry| entry.at == at) {
            if self.entries[index].name == name {
                self.entries[index].fileid = fileid;
                return;
            }
            at += 1;
            index += 1;
        }
        if self.after < at && at <= self.upto && at <= LAST_COOKIE {
            self.entries.insert(index, Placed { at, name: name.clone(), fileid });
        }
    }

    /// A name was taken from the directory. Others keep their cookies.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        let at = place(name);
        let start = self.entries.partition_point(|entry| entry.at < at);
        let near = self.entries[start..].iter().take_while(|entry| entry.at <= at + SLACK);
        if let Some(offset) = near.into_iter().position(|entry| entry.name == name) {
            self.entries.remove(start + offset);
        }
    }

    /// How many entries are kept.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests;
