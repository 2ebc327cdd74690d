//! An object's identity, independent of its names.
//!
//! Owns: an object's identity, maps by it.
//! Does not own: finding an object by its identity on a host (the tree), handles for clients (`objects::handle`).
//! Invariants: equal identities are the same object, while it lives.

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Most bytes that a host may use to identify an object in its file system.
pub const IDENTITY_BYTES_MAX: usize = 40;

/// An object's identity, independent of its names: a file-system id and the host's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    fsid: u64,
    form: u8,
    kind: u8,
    len: u8,
    bytes: [u8; IDENTITY_BYTES_MAX],
}

impl Identity {
    /// An identity. The world chooses `form` and `kind`, which show how the bytes were made.
    ///
    /// # Panics
    /// If there are more than [`IDENTITY_BYTES_MAX`] bytes.
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

    /// Sixty-four bits that spread identities over tables. Not keyed: the host, not the client, chooses the input.
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

/// Passes on the one word that an [`Identity`] hashes to.
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
