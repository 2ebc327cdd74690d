//! The record of objects' locations, for a later server.
//!
//! Owns: the format of the record, reading it, the entries still to be written.
//! Does not own: the file (worlds, behind [`LocationStore`]), the moments of writes (`record`).
//! Invariants: reading ends at the first incomplete or damaged entry, and reports that; all entries before it are used.
//! An entry is only a hint: an object found by it is used if it has the wanted identity. The pending entries are
//! bounded: beyond the bound the whole record is written anew.
//!
//! Format: a head of 16 bytes, then entries. An entry is its length in two bytes, its body, and a checksum of four
//! bytes. The body is a kind, an object's identity and, for a location, its directory's identity and the name. Numbers
//! are big-endian. Later entries about an object replace earlier ones.

use std::hash::Hasher;
use std::mem;

use bytes::Bytes;
use siphasher::sip::SipHasher24;

use crate::tree::directory::Location;
use crate::tree::identity::{IDENTITY_BYTES_MAX, Identity};
use crate::tree::names::NAME_BYTES_MAX;
use crate::tree::pending::TreeResult;

/// The storage of the record of locations between runs of a server. Only one server uses it.
pub trait LocationStore: Send + Sync {
    /// Adds bytes at the end. After an error the number of bytes added is unknown.
    fn append(&self, bytes: Bytes) -> TreeResult<'_, ()>;

    /// Replaces the whole contents; a crash leaves either the old or the new ones.
    fn replace(&self, bytes: Bytes) -> TreeResult<'_, ()>;
}

const HEAD: &[u8; 16] = b"afflux places 1\n";
const LOCATION: u8 = 1;
const GONE: u8 = 2;
const LENGTH_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 4;
/// File-system id, form, kind, length.
const IDENTITY_HEAD_BYTES: usize = 8 + 1 + 1 + 1;
const BODY_BYTES_MAX: usize = 1 + 2 * (IDENTITY_HEAD_BYTES + IDENTITY_BYTES_MAX) + NAME_BYTES_MAX;
const _: () = assert!(BODY_BYTES_MAX <= u16::MAX as usize);

/// Most pending bytes.
const PENDING_BYTES_MAX: usize = 4 << 20;
/// The record is written anew when its entries exceed twice the known locations by this number.
const SLACK_ENTRIES: u64 = 4_096;

/// The record's knowledge of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LocationEntry {
    At(Identity, Location),
    /// Its last name is gone.
    Gone(Identity),
}

/// The result of reading a record.
pub(crate) struct Read {
    /// The entries, in their order.
    pub(crate) entries: Vec<LocationEntry>,
    /// The record was undamaged and complete.
    pub(crate) whole: bool,
}

/// Reads a record; an empty one is whole.
pub(crate) fn read(record: &[u8]) -> Read {
    let mut entries = Vec::new();
    let Some(mut rest) = record.strip_prefix(HEAD) else {
        return Read { entries, whole: record.is_empty() };
    };
    while let Some((entry, behind)) = next_entry(rest) {
        entries.push(entry);
        rest = behind;
    }
    Read { entries, whole: rest.is_empty() }
}

fn next_entry(bytes: &[u8]) -> Option<(LocationEntry, &[u8])> {
    let (length, rest) = bytes.split_at_checked(LENGTH_BYTES)?;
    let (body, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([length[0], length[1]])))?;
    let (sum, rest) = rest.split_at_checked(CHECKSUM_BYTES)?;
    if checksum(body) != *sum {
        return None;
    }
    let (kind, body) = body.split_first()?;
    let (identity, body) = split_identity(body)?;
    let entry = match *kind {
        GONE if body.is_empty() => LocationEntry::Gone(identity),
        LOCATION => {
            let (parent, name) = split_identity(body)?;
            LocationEntry::At(identity, Location { parent, name: Bytes::copy_from_slice(name) })
        }
        _ => return None,
    };
    Some((entry, rest))
}

fn split_identity(bytes: &[u8]) -> Option<(Identity, &[u8])> {
    let (head, rest) = bytes.split_at_checked(IDENTITY_HEAD_BYTES)?;
    let fsid = u64::from_be_bytes(*head.first_chunk()?);
    let length = usize::from(head[10]);
    let (host, rest) = rest.split_at_checked(length).filter(|_| length <= IDENTITY_BYTES_MAX)?;
    Some((Identity::new(fsid, head[8], head[9], host), rest))
}

/// Not keyed: it detects damage by a crash or a disk. It is no protection from an attacker with access to the record's
/// directory.
fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = SipHasher24::new();
    hasher.write(body);
    (hasher.finish() as u32).to_be_bytes()
}

fn push_identity(bytes: &mut Vec<u8>, identity: &Identity) {
    bytes.extend(identity.fsid().to_be_bytes());
    bytes.extend([identity.form(), identity.kind(), identity.bytes().len() as u8]);
    bytes.extend(identity.bytes());
}

fn push(record: &mut Vec<u8>, entry: &LocationEntry) {
    let length_at = record.len();
    record.extend([0; LENGTH_BYTES]);
    let body_at = record.len();
    match entry {
        LocationEntry::At(identity, location) => {
            record.push(LOCATION);
            push_identity(record, identity);
            push_identity(record, &location.parent);
            record.extend(&location.name[..]);
        }
        LocationEntry::Gone(identity) => {
            record.push(GONE);
            push_identity(record, identity);
        }
    }
    let length = (record.len() - body_at) as u16;
    record[length_at..body_at].copy_from_slice(&length.to_be_bytes());
    let sum = checksum(&record[body_at..]);
    record.extend(sum);
}

/// A record of exactly these entries.
pub(crate) fn written(entries: impl Iterator<Item = LocationEntry>) -> Vec<u8> {
    let mut record = HEAD.to_vec();
    entries.for_each(|entry| push(&mut record, &entry));
    record
}

/// The next write of the record.
pub(crate) enum LogWrite {
    /// Nothing.
    Nothing,
    /// Append these bytes.
    More(Bytes),
    /// Write the whole record.
    All,
}

/// The end of a record in use.
pub(crate) struct LocationLog {
    pending: Vec<u8>,
    /// In the record, and pending.
    entries: u64,
    /// The record cannot be appended to.
    broken: bool,
}

impl LocationLog {
    /// After a record of `entries`; a record that is not `whole` is first written anew.
    pub(crate) fn behind(entries: u64, whole: bool) -> Self {
        Self { pending: Vec::new(), entries, broken: entries == 0 || !whole }
    }

    pub(crate) fn add(&mut self, entry: &LocationEntry) {
        self.entries += 1;
        if !self.broken {
            push(&mut self.pending, entry);
        }
        if self.pending.len() > PENDING_BYTES_MAX {
            self.failed();
        }
    }

    /// The write to make now; `known` is the number of entries that a new record would have.
    pub(crate) fn take(&mut self, known: u64) -> LogWrite {
        let nothing = self.pending.is_empty() && (!self.broken || self.entries == 0);
        if nothing {
            return LogWrite::Nothing;
        }
        if self.broken || self.entries > 2 * known + SLACK_ENTRIES {
            self.pending = Vec::new();
            return LogWrite::All;
        }
        LogWrite::More(mem::take(&mut self.pending).into())
    }

    /// The whole record is being written anew, with `entries`; later entries are appended.
    pub(crate) fn begins_anew(&mut self, entries: u64) {
        *self = Self { pending: Vec::new(), entries, broken: false };
    }

    /// The write failed: the contents of the record are unknown.
    pub(crate) fn failed(&mut self) {
        self.pending = Vec::new();
        self.broken = true;
    }
}

#[cfg(test)]
mod tests;
