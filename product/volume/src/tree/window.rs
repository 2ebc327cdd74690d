//! Reading a directory in pieces: cookies that outlive changes, restarts and our memory.
//!
//! Owns: the position of an entry in a listing, gathering a part of a directory, the sizes of parts.
//! Does not own: reading the directory (the tree), the gathered part (`listed`), handles and attributes of entries
//! (`names::list`).
//! Invariants: an entry's cookie depends on its name alone, except for the rare names that hash alike, which follow
//! each other. So a listing goes on after the same cookie, even if entries came, went or were forgotten. It never
//! starts again, never loops and never skips a name that was there all the time. Cookies are below 2^31.
//!
//! More than [`SLACK`] names of one hash break this in their own directory. A listing that goes on behind the last of
//! these names skips the others. Such names cost an attacker some 10^11 hashes.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::error::VolumeError;

/// The cookies of "." and "..".
pub(crate) const SELF_COOKIE: u64 = 1;
pub(crate) const PARENT_COOKIE: u64 = 2;

/// Cookies of names start here.
const FIRST_COOKIE: u64 = 3;
/// Names hash to this many places.
const POSITIONS: u64 = (1 << 31) - FIRST_COOKIE - SLACK;
/// How far names that hash alike may push each other.
pub(super) const SLACK: u64 = 64;
/// The largest cookie.
pub(crate) const LAST_COOKIE: u64 = (1 << 31) - 1;

/// Most entries of a window at first. Most directories have fewer.
pub(crate) const WINDOW_ENTRIES_MAX: usize = 65_536;
/// Most entries of the window of a larger directory. Beyond them the directory is read again for the next entries.
pub(crate) const LARGE_WINDOW_ENTRIES_MAX: usize = 524_288;

/// The position of a name, before names that hash alike are told apart. Unkeyed: it must be the same in every run.
pub(super) fn position(name: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    hasher.write(name);
    FIRST_COOKIE + hasher.finish() % POSITIONS
}

/// The entry's object has to be looked at for its number.
const ASKED: u16 = u16::MAX;

/// An entry as the host lists it. The names of all entries are in one piece of memory beside them.
#[derive(Clone, Copy)]
pub(super) struct PlacedEntry {
    /// A place; once the window is complete, the cookie.
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
    /// The number of entries that are kept in the end.
    held_max: usize,
    /// Up to half as many again are gathered before the surplus is dropped.
    pub(super) entries: Vec<PlacedEntry>,
    pub(super) names: Vec<u8>,
    /// No entry beyond this one will be kept.
    bound: u64,
    cut: bool,
    complete: bool,
    doubtful: bool,
    /// File systems of entries that are not on the directory's.
    elsewhere: Vec<u64>,
}

impl Window {
    /// The place of a name in the order of listings: below 2^31, the same in every run. A tree with its entries
    /// in this order reads a window as one range.
    pub fn position(name: &[u8]) -> u64 {
        position(name)
    }

    /// The first place with entries for this window.
    pub fn first_position(&self) -> u64 {
        self.after.saturating_sub(SLACK)
    }

    /// The last place with entries for this window. It moves down while the window fills.
    pub fn last_position(&self) -> u64 {
        self.bound.min(LAST_COOKIE)
    }

    pub(crate) fn new(after: u64) -> Self {
        Self::with_bound(after, WINDOW_ENTRIES_MAX)
    }

    /// As `new`, for a directory with more entries than that keeps.
    pub(crate) fn large(after: u64) -> Self {
        Self::with_bound(after, LARGE_WINDOW_ENTRIES_MAX)
    }

    /// As `new`, with another bound on the entries.
    pub(crate) fn with_bound(after: u64, entries_max: usize) -> Self {
        // Names just before the cookie are kept, too, since they may push later ones.
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

    /// Whether the directory had more entries than are kept.
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
            let Some((elsewhere, number)) = look(entry.name(&self.names)) else { continue };
            entry.fileid = number;
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

    /// Completes the window, and gives each entry the number that `number` makes of the id of its file system, unless
    /// that is the directory's, and of its number there.
    pub(crate) fn number(
        &mut self,
        number: impl Fn(Option<u64>, u64) -> Result<u64, VolumeError>,
    ) -> Result<(), VolumeError> {
        self.complete();
        for entry in &mut self.entries {
            let elsewhere = usize::from(entry.of).checked_sub(1).and_then(|at| self.elsewhere.get(at));
            entry.fileid = number(elsewhere.copied(), entry.fileid)?;
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
