//! The two forms in which a client names an object: the bytes of its handle, over renames and restarts, and one number
//! for each object of all the file systems of a volume.
//!
//! Owns: the layout of a handle, the key that marks our own; the numbers that are reported to clients instead of the
//! hosts' own ones.
//! Does not own: the storage of the key (the world), identities (`tree::identity`), finding an object by its identity
//! (`handles`), the hosts' numbers and the ids of file systems (the tree).
//! Invariants: a handle without the key's hash over all its other bytes is refused before anything in it is used. Two
//! objects have the same number only if their file system and their host's number are the same. The number of an object
//! stays the same while the volume lives, and almost always over a restart, since the number depends on the id of the
//! file system.
//!
//! The low [`LOW_BITS`] of a host's number stay as they are. The bits above name a prefix: each pair of a file system
//! and the high bits of its numbers gets a prefix of its own. Most file systems use no high bits, and so need one
//! prefix. The numbers of the file system of the first export, the home, stay as they are, unless another one has the
//! prefix already.
//!
//! Layout of a handle, in bytes: version 1, export 2, file-system id 8, form 1, kind 1, the host's bytes 0 to 40, keyed
//! hash 8. All numbers are big-endian.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::Hasher;
use std::sync::Mutex;

use siphasher::sip::SipHasher24;

use crate::error::VolumeError;
use crate::lock::lock;
use crate::tree::attributes::Stat;
use crate::tree::identity::{IDENTITY_BYTES_MAX, Identity};

/// Longest handle in bytes (RFC 1813, NFS3_FHSIZE).
pub const HANDLE_BYTES_MAX: usize = 64;

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 13;
const HASH_BYTES: usize = 8;
const _: () = assert!(FIXED_BYTES + IDENTITY_BYTES_MAX + HASH_BYTES <= HANDLE_BYTES_MAX);

/// A client's name for an object: at most 64 bytes.
#[derive(Clone, Copy)]
pub struct FileHandle {
    bytes: [u8; HANDLE_BYTES_MAX],
    len: u8,
}

impl FileHandle {
    /// A handle of these bytes, unchecked: [`crate::Volume::resolve`] refuses one that was not given out. `None` if
    /// there are too many.
    pub fn from_bytes(handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; HANDLE_BYTES_MAX];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { bytes, len: handle.len() as u8 })
    }

    /// The bytes to send.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for FileHandle {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for FileHandle {}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The secret that marks handles as our own. It must survive restarts, or clients must mount anew.
#[derive(Clone)]
pub struct HandleKey {
    key: [u8; 16],
}

impl HandleKey {
    /// The key with these 128 bits.
    pub fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The bits, for storage.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.key
    }

    /// A secret for another purpose, derived from this one. Handles do not reveal it.
    pub(crate) fn derived(&self, purpose: &str) -> [u8; 16] {
        let mut key = [0; 16];
        for (part, half) in key.chunks_exact_mut(8).enumerate() {
            // No handle begins like this: its first byte is its version.
            half.copy_from_slice(&self.hash(format!("{purpose} {part}").as_bytes()).to_le_bytes());
        }
        key
    }

    /// The 16 bits by which handles name an export. They are a hash of its root's identity, so that they do not depend
    /// on the order of the exports.
    pub(crate) fn export_tag(&self, root: &Identity) -> u16 {
        self.hash(self.encode(root, 0).as_slice()) as u16
    }

    /// The handle of an object below the export `export`.
    pub(crate) fn seal(&self, identity: &Identity, export: u16) -> FileHandle {
        let mut parts = self.encode(identity, export);
        let hash = self.hash(parts.as_slice());
        parts.push(&hash.to_be_bytes());
        FileHandle { bytes: parts.bytes, len: parts.len as u8 }
    }

    /// The hash of an object's handle, the same below each export.
    pub(crate) fn handle_hash(&self, identity: &Identity) -> u64 {
        self.hash(self.encode(identity, 0).as_slice())
    }

    /// The contents of a handle, if this key sealed it.
    pub(crate) fn open(&self, handle: &[u8]) -> Result<(Identity, u16), VolumeError> {
        let (identity, export) = peek(handle)?;
        let (body, hash) = handle.split_at(handle.len() - HASH_BYTES);
        if self.hash(body).to_be_bytes() != *hash {
            return Err(VolumeError::BadHandle);
        }
        Ok((identity, export))
    }

    fn encode(&self, identity: &Identity, export: u16) -> Parts {
        let mut parts = Parts { bytes: [0; HANDLE_BYTES_MAX], len: 0 };
        parts.push(&[VERSION]);
        parts.push(&export.to_be_bytes());
        parts.push(&identity.fsid().to_be_bytes());
        parts.push(&[identity.form(), identity.kind()]);
        parts.push(identity.bytes());
        parts
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// The hash of a handle: equal for equal handles, and different for any two that were given out. `None` for
/// bytes too short to have a hash.
pub fn handle_hash(handle: &[u8]) -> Option<u64> {
    handle.last_chunk().map(|hash| u64::from_be_bytes(*hash))
}

/// The contents of a handle, without a check of its hash. They suffice to find a cached object, and then its whole
/// handle is compared.
pub(crate) fn peek(handle: &[u8]) -> Result<(Identity, u16), VolumeError> {
    let host_bytes = handle.len().checked_sub(FIXED_BYTES + HASH_BYTES).ok_or(VolumeError::BadHandle)?;
    if host_bytes > IDENTITY_BYTES_MAX || handle[0] != VERSION {
        return Err(VolumeError::BadHandle);
    }
    let export = u16::from_be_bytes([handle[1], handle[2]]);
    let mut fsid = [0; 8];
    fsid.copy_from_slice(&handle[3..11]);
    let host = &handle[FIXED_BYTES..FIXED_BYTES + host_bytes];
    Ok((Identity::new(u64::from_be_bytes(fsid), handle[11], handle[12], host), export))
}

struct Parts {
    bytes: [u8; HANDLE_BYTES_MAX],
    len: usize,
}

impl Parts {
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// 2^40 inodes of 256 bytes need 256 TiB, so only numbers with a meaning of their own have more bits.
const LOW_BITS: u32 = 40;
const LOW: u64 = (1 << LOW_BITS) - 1;
/// There are so many prefixes.
const PREFIXES: u32 = 1 << (u64::BITS - LOW_BITS);
const WORD_BITS: u32 = u64::BITS;

pub(crate) struct FileIds {
    /// The file system of the first export.
    home: u64,
    prefixes: Mutex<FileIdPrefixes>,
}

#[derive(Default)]
struct FileIdPrefixes {
    /// The prefixes at which the home has its own high bits: a bit for each, as far as they were needed.
    of_home: Vec<u64>,
    /// The other prefixes, by file system and high bits.
    moved: BTreeMap<(u64, u32), u32>,
    /// The values of `moved`.
    taken: BTreeSet<u32>,
}

impl FileIds {
    /// Numbers around a file system whose own numbers stay.
    pub(crate) fn around(home: u64) -> Self {
        Self { home, prefixes: Mutex::default() }
    }

    /// The number for clients of an object that has this `fileid` on the file system with the id `fsid`.
    /// [`VolumeError::NoMemory`] if no prefix is free: some file systems have used all bits of their numbers.
    pub(crate) fn of(&self, fsid: u64, fileid: u64) -> Result<u64, VolumeError> {
        let high = (fileid >> LOW_BITS) as u32;
        // This prefix belongs to the home from the start.
        if high == 0 && fsid == self.home {
            return Ok(fileid);
        }
        let prefix = lock(&self.prefixes).of(self.home, fsid, high).ok_or(VolumeError::NoMemory)?;
        Ok(u64::from(prefix) << LOW_BITS | fileid & LOW)
    }

    /// An object's attributes with its number for clients instead of the host's.
    pub(crate) fn with_fileid(&self, identity: &Identity, stat: Stat) -> Result<Stat, VolumeError> {
        Ok(Stat { fileid: self.of(identity.fsid(), stat.fileid)?, ..stat })
    }
}

impl FileIdPrefixes {
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
