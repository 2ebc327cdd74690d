//! Callers' rights on an object: by its mode bits, by the host's answer, and from memory.
//!
//! Owns: the ids of the callers, the kernel's rules about mode bits, NFS's two exceptions to them, the remembered
//! answers of the host, the word that answers hits.
//! Does not own: asking the host (`data::permission`), the age limit of rights (the epoch that callers pass).
//! Invariants: mode bits decide only where no access control list can disagree: for root, for the owner, and where the
//! group's bits, which bound such a list, are all 0. A detected change of mode, owner or group erases the remembered
//! rights, and they answer hits only within their epoch. An id is given to one user with one set of groups, and
//! never again. At most [`CALLERS_MAX`] callers are cached. The id of a user that calls again before half as many
//! others came stays the same.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tree::attributes::{Kind, Stat};
use crate::tree::caller::{Caller, Credentials};

/// Reading, as in the host's answer about a caller's rights.
pub(crate) const READ: u8 = 1;
pub(crate) const WRITE: u8 = 2;
/// Executing a file, searching a directory.
pub(crate) const EXECUTE: u8 = 4;

/// A caller's use of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Use {
    /// Reading a file's bytes, or a directory's names.
    Read = 1,
    /// Changing a file's bytes or size.
    Write = 2,
    /// Looking names up in a directory.
    Search = 4,
    /// Making written data durable.
    Commit = 8,
}

/// The rights that mode bits give, ignoring access control lists.
pub(crate) fn by_mode_alone(stat: &Stat, user: &Credentials) -> u8 {
    if user.is_root() {
        // Root may execute a file that has any execute bit.
        let executes = stat.kind == Kind::Directory || stat.mode & 0o111 != 0;
        return READ | WRITE | if executes { EXECUTE } else { 0 };
    }
    let class = match () {
        () if user.uid == stat.uid => 6,
        () if user.is_in(stat.gid) => 3,
        () => 0,
    };
    // A mode has read, write, execute from high to low; rights have them from low to high.
    let bits = stat.mode >> class;
    let right = |bit: u32, right| if bits & bit != 0 { right } else { 0 };
    right(4, READ) | right(2, WRITE) | right(1, EXECUTE)
}

/// The rights that mode bits give, if nothing else can count.
pub(crate) fn by_mode(stat: &Stat, user: &Credentials) -> Option<u8> {
    let certain = user.is_root() || user.uid == stat.uid || stat.mode & 0o070 == 0;
    certain.then(|| by_mode_alone(stat, user))
}

/// The uses that `rights` allow, as a sum. A server knows nothing of open files. So the owner of a file may always read
/// and write it, as if it had been opened before its mode was set. A user with execute permission may read the file
/// (RFC 1813, section 4.4).
pub(crate) fn uses(stat: &Stat, user: &Credentials, rights: u8) -> u8 {
    let (mut reads, mut writes) = (rights & READ != 0, rights & WRITE != 0);
    if stat.kind == Kind::Regular {
        let own = user.uid == stat.uid;
        reads |= own || rights & EXECUTE != 0;
        writes |= own;
    }
    let one = |allowed, one: Use| if allowed { one as u8 } else { 0 };
    one(reads, Use::Read)
        | one(writes, Use::Write)
        | one(rights & EXECUTE != 0, Use::Search)
        | one(reads || writes, Use::Commit)
}

/// Most callers with remembered rights on one object.
const ASKED_MAX: usize = 8;

/// The host's answers about callers' rights.
#[derive(Default)]
pub(crate) struct CachedRights {
    /// Oldest first; the oldest is replaced first.
    answers: Vec<(u64, u8)>,
    /// How often all answers were forgotten: an answer to an earlier question is not cached.
    forgotten: u64,
}

impl CachedRights {
    pub(crate) fn get(&self, caller: u64) -> Option<u8> {
        self.answers.iter().find(|(known, _)| *known == caller).map(|(_, rights)| *rights)
    }

    /// Call it before the host is asked.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Stores an answer to a question that was asked at `forgotten`.
    pub(crate) fn keep(&mut self, caller: u64, rights: u8, forgotten: u64) {
        if self.forgotten != forgotten {
            return;
        }
        self.answers.retain(|(known, _)| *known != caller);
        if self.answers.len() == ASKED_MAX {
            self.answers.remove(0);
        }
        self.answers.push((caller, rights));
    }

    pub(crate) fn forget(&mut self) {
        self.answers.clear();
        self.forgotten += 1;
    }
}

const USE_BITS: u32 = 4;
const EPOCH_BITS: u32 = 20;
/// Callers with larger ids are not remembered here.
const ID_BITS: u32 = 64 - EPOCH_BITS - USE_BITS;

/// The allowed uses of the last caller checked: one load answers a hit.
#[derive(Default)]
pub(crate) struct Remembered(AtomicU64);

impl Remembered {
    /// The tag of a caller with an id above 0; a word of 0 means none.
    fn tag(caller: u64, epoch: u64) -> Option<u64> {
        let epoch = epoch & ((1 << EPOCH_BITS) - 1);
        (caller < 1 << ID_BITS).then_some(caller << EPOCH_BITS | epoch)
    }

    /// Whether the caller has this right, if it is remembered.
    #[inline]
    pub(crate) fn allows(&self, caller: u64, epoch: u64, wanted: Use) -> Option<bool> {
        let word = self.0.load(Ordering::Relaxed);
        (Some(word >> USE_BITS) == Self::tag(caller, epoch)).then_some(word & u64::from(wanted as u8) != 0)
    }

    /// Called with the object's state locked, as [`Remembered::forget`] is.
    pub(crate) fn keep(&self, caller: u64, epoch: u64, uses: u8) {
        if let Some(tag) = Self::tag(caller, epoch) {
            self.0.store(tag << USE_BITS | u64::from(uses), Ordering::Relaxed);
        }
    }

    /// Forgets the last caller.
    pub(crate) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Most users that are cached. A user that returns after it was dropped gets a new id, and new questions to the
/// host.
const CALLERS_MAX: usize = 4096;

type Key = (u32, u32, Box<[u32]>);

pub(crate) struct CallerTable(Mutex<KnownCallers>);

struct KnownCallers {
    /// Those that have called since the last change of generations.
    callers: BTreeMap<Key, Caller>,
    /// Those that had called between the last two changes.
    before: BTreeMap<Key, Caller>,
    next_id: u64,
}

impl Default for CallerTable {
    fn default() -> Self {
        Self(Mutex::new(KnownCallers { callers: BTreeMap::new(), before: BTreeMap::new(), next_id: 1 }))
    }
}

impl CallerTable {
    /// The caller with these credentials.
    pub(crate) fn of(&self, uid: u32, gid: u32, groups: &[u32]) -> Caller {
        let mut groups = groups.to_vec();
        groups.sort_unstable();
        groups.dedup();
        let key = (uid, gid, groups.into_boxed_slice());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = known.callers.get(&key) {
            return caller.clone();
        }
        if known.callers.len() >= CALLERS_MAX / 2 {
            known.before = mem::take(&mut known.callers);
        }
        let caller = known.before.remove(&key).unwrap_or_else(|| {
            known.next_id += 1;
            let user = Credentials { uid, gid, groups: key.2.clone() };
            Caller::user(Arc::new(user), known.next_id - 1)
        });
        known.callers.insert(key, caller.clone());
        caller
    }
}

#[cfg(test)]
mod tests;
