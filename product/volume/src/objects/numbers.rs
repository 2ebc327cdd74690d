//! One number for each object of all the file systems of a volume.
//!
//! Owns: the numbers that clients are told instead of the hosts' own ones.
//! Does not own: the hosts' numbers and the ids of file systems (the tree).
//! Invariants: two objects have the same number only if their file system and their host's number are the same. An
//! object keeps its number while the volume lives. Almost always it has the same one after a restart, since the number
//! depends on the id of the file system.
//!
//! The low [`LOW_BITS`] of a host's number stay as they are. The bits above name a prefix: each pair of a file system
//! and the high bits of its numbers gets a prefix of its own. Most file systems use no high bits, and so need one
//! prefix. The file system of the first export, the home, keeps its numbers, unless another one has the prefix already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::error::VolumeError;
use crate::lock::lock;
use crate::tree::identity::Identity;
use crate::tree::stat::Stat;

/// 2^40 inodes of 256 bytes need 256 TiB, so only numbers with a meaning of their own have more bits.
const LOW_BITS: u32 = 40;
const LOW: u64 = (1 << LOW_BITS) - 1;
/// There are so many prefixes.
const PREFIXES: u32 = 1 << (u64::BITS - LOW_BITS);
const WORD_BITS: u32 = u64::BITS;

pub(crate) struct Numbers {
    /// The file system of the first export.
    home: u64,
    prefixes: Mutex<NumberPrefixes>,
}

#[derive(Default)]
struct NumberPrefixes {
    /// The prefixes at which the home has its own high bits: a bit for each, as far as they were needed.
    of_home: Vec<u64>,
    /// The other prefixes, by file system and high bits.
    moved: BTreeMap<(u64, u32), u32>,
    /// The values of `moved`.
    taken: BTreeSet<u32>,
}

impl Numbers {
    /// Numbers around a file system that keeps its own ones.
    pub(crate) fn around(home: u64) -> Self {
        Self { home, prefixes: Mutex::default() }
    }

    /// The number for clients of an object that has this `number` on the file system with the id `fsid`.
    /// [`VolumeError::NoMemory`] if there are no prefixes left: some file systems have used all bits of their numbers.
    pub(crate) fn of(&self, fsid: u64, number: u64) -> Result<u64, VolumeError> {
        let high = (number >> LOW_BITS) as u32;
        // This prefix belongs to the home from the start.
        if high == 0 && fsid == self.home {
            return Ok(number);
        }
        let prefix = lock(&self.prefixes).of(self.home, fsid, high).ok_or(VolumeError::NoMemory)?;
        Ok(u64::from(prefix) << LOW_BITS | number & LOW)
    }

    /// An object's attributes with its number for clients instead of the host's.
    pub(crate) fn numbered(&self, identity: &Identity, stat: Stat) -> Result<Stat, VolumeError> {
        Ok(Stat { fileid: self.of(identity.fsid(), stat.fileid)?, ..stat })
    }
}

impl NumberPrefixes {
    fn of(&mut self, home: u64, fsid: u64, high: u32) -> Option<u32> {
        if let Some(prefix) = self.moved.get(&(fsid, high)) {
            return Some(*prefix);
        }
        if fsid == home {
            if self.is_of_home(high) {
                return Some(high);
            }
            if !self.taken.contains(&high) {
                self.give_home(high);
                return Some(high);
            }
        }
        let wanted = high ^ if fsid == home { 0 } else { spread(fsid) };
        // The step is odd, so all prefixes are tried.
        let step = spread(fsid) | 1;
        let mut tried = (0..PREFIXES).map(|tries| wanted.wrapping_add(tries.wrapping_mul(step)) & (PREFIXES - 1));
        let prefix = tried.find(|prefix| !self.is_of_home(*prefix) && !self.taken.contains(prefix))?;
        self.moved.insert((fsid, high), prefix);
        self.taken.insert(prefix);
        Some(prefix)
    }

    fn is_of_home(&self, prefix: u32) -> bool {
        let word = self.of_home.get((prefix / WORD_BITS) as usize).copied().unwrap_or(0);
        prefix == 0 || word & 1 << (prefix % WORD_BITS) != 0
    }

    fn give_home(&mut self, prefix: u32) {
        let at = (prefix / WORD_BITS) as usize;
        if at >= self.of_home.len() {
            self.of_home.resize(at + 1, 0);
        }
        self.of_home[at] |= 1 << (prefix % WORD_BITS);
    }
}

/// Bits that spread file systems over the prefixes: never 0. The highest bit stays the host's, so that usual numbers
/// are positive for programs that read them as signed.
fn spread(fsid: u64) -> u32 {
    let mixed = (fsid ^ fsid >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 41) as u32).max(1)
}

#[cfg(test)]
mod tests;
