//! Handles: the bytes by which a client names an object, over renames and restarts.
//!
//! Owns: an object's identity, the layout of a handle, the key that marks our own.
//! Does not own: where the key is kept (the world), or how an identity is found again (`resolve`).
//! Invariants: a handle without the key's hash over every other byte of it is refused before
//! anything in it is used. Equal identities are the same object, for as long as it lives.
//!
//! Layout, in bytes: version 1, export 2, file-system id 8, form 1, kind 1, the host's bytes 0 to
//! 40, keyed hash 8. All numbers are big-endian.

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use siphasher::sip::SipHasher24;

use crate::error::VolumeError;

/// Longest handle in bytes (RFC 1813, NFS3_FHSIZE).
pub const HANDLE_BYTES_MAX: usize = 64;

/// Most bytes that a host may use to identify an object in its file system.
pub const IDENTITY_BYTES_MAX: usize = 40;

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 13;
const HASH_BYTES: usize = 8;
const _: () = assert!(FIXED_BYTES + IDENTITY_BYTES_MAX + HASH_BYTES <= HANDLE_BYTES_MAX);

/// What an object is known by, whatever its names: a file-system id and the host's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    fsid: u64,
    form: u8,
    kind: u8,
    len: u8,
    bytes: [u8; IDENTITY_BYTES_MAX],
}

impl Identity {
    /// An identity. `form` and `kind` are the world's to choose: how the bytes were made.
    ///
    /// # Panics
    /// When there are more than [`IDENTITY_BYTES_MAX`] bytes.
    pub fn new(fsid: u64, form: u8, kind: u8, host: &[u8]) -> Self {
        assert!(host.len() <= IDENTITY_BYTES_MAX, "{} bytes do not fit an identity", host.len());
        let mut bytes = [0; IDENTITY_BYTES_MAX];
        bytes[..host.len()].copy_from_slice(host);
        Self { fsid, form, kind, len: host.len() as u8, bytes }
    }

    /// The file system.
    pub fn fsid(&self) -> u64 {
        self.fsid
    }

    /// How the bytes were made.
    pub fn form(&self) -> u8 {
        self.form
    }

    /// The host's type of the bytes.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The host's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Sixty-four bits that spread identities over tables. Not keyed: the host, not the client,
    /// chooses what goes in.
    pub(crate) fn mixed(&self) -> u64 {
        let mut mixed = self.fsid ^ u64::from(self.kind);
        for chunk in self.bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mixed = (mixed ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^= mixed >> 29;
        }
        mixed
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{}.{}:", self.fsid, self.form, self.kind)?;
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

/// Takes the one word that an [`Identity`] hashes to as it is.
#[derive(Clone, Copy, Default)]
pub(crate) struct PassHasher(u64);

impl Hasher for PassHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A map keyed by identities. Iterates in the same order in every run.
pub(crate) type IdentityMap<V> = std::collections::HashMap<Identity, V, BuildHasherDefault<PassHasher>>;

/// What a client is given to name an object by: at most 64 bytes.
#[derive(Clone, Copy)]
pub struct FileHandle {
    bytes: [u8; HANDLE_BYTES_MAX],
    len: u8,
}

impl FileHandle {
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

/// The secret that marks handles as given out here. Kept over restarts, or clients must mount anew.
#[derive(Clone)]
pub struct HandleKey {
    key: [u8; 16],
}

impl HandleKey {
    /// The key with these 128 bits.
    pub fn new(key: [u8; 16]) -> Self {
        Self { key }
    }

    /// The bits, to keep them.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.key
    }

    /// The 16 bits by which handles name an export: a hash of its root's identity, so that they do
    /// not depend on the order in which directories are exported.
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

    /// What is in a handle, if it is one that this key sealed.
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
        parts.push(&identity.fsid.to_be_bytes());
        parts.push(&[identity.form, identity.kind]);
        parts.push(identity.bytes());
        parts
    }

    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// What a handle says, without a look at its hash: enough to find a cached object, whose own handle
/// is then compared as a whole.
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

#[cfg(test)]
mod tests;
