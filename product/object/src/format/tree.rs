//! The records of the tree of names: inodes, entries of directories, the count of files.
//!
//! Owns: their keys and values; the mark of an object without a name, the keys of extended attributes; ranges of
//! positions in a directory.
//! Does not own: access control lists (`acl`); size, used bytes and the time of the last write (the body's record,
//! right behind), the meaning of modes, the position of a name (`afflux_volume`).
//! Invariants: a number is never used twice. A symbolic link has its target here, a directory its parent. A directory's
//! records are in the order of its listings.

use afflux_volume::{Kind, NAME_BYTES_MAX, TARGET_BYTES_MAX, Timestamp, Window};
use bytes::Bytes;

use crate::format::acl::Acls;
use crate::format::extent::EPOCH_MAX;
use crate::format::{FieldBytes, FormatError, exactly, in_range};

/// The root of each volume. Numbers of epochs are larger.
pub(crate) const ROOT: u64 = 1;

const COUNT_BITS: u32 = 40;
const HEAD_BYTES: usize = 1 + 2 + 3 * 4 + 4 * TIME_BYTES + 8;
const TIME_BYTES: usize = 12;
const NANOS_MAX: u64 = 999_999_999;
/// Beside the mode: the object has extended attributes, or had some.
const WITH_XATTRS: u16 = 1 << 15;
/// Beside the mode: an access list follows the numbers.
const WITH_ACCESS_ACL: u16 = 1 << 14;
/// Beside the mode: a default list follows the numbers, behind the access list.
const WITH_DEFAULT_ACL: u16 = 1 << 13;

/// The inode number of the next object that an epoch makes.
pub(crate) fn ino(epoch: u32, count: u64) -> Result<u64, FormatError> {
    in_range("the epoch of an object", u64::from(epoch), 1, u64::from(EPOCH_MAX))?;
    in_range("the number of an object", count, 0, (1 << COUNT_BITS) - 1)?;
    Ok(u64::from(epoch) << COUNT_BITS | count)
}

/// The part of an inode that differs by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The bytes are elsewhere.
    Regular,
    /// With the number of its entries, which have records of their own.
    Directory {
        parent: u64,
        entries: u64,
    },
    Symlink(Bytes),
    BlockDevice {
        major: u32,
        minor: u32,
    },
    CharDevice {
        major: u32,
        minor: u32,
    },
    Fifo,
    Socket,
}

impl Content {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Regular => Kind::Regular,
            Self::Directory { .. } => Kind::Directory,
            Self::Symlink(_) => Kind::Symlink,
            Self::BlockDevice { .. } => Kind::BlockDevice,
            Self::CharDevice { .. } => Kind::CharDevice,
            Self::Fifo => Kind::Fifo,
            Self::Socket => Kind::Socket,
        }
    }
}

/// The code of a kind in records.
pub(crate) fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Regular => 1,
        Kind::Directory => 2,
        Kind::Symlink => 3,
        Kind::BlockDevice => 4,
        Kind::CharDevice => 5,
        Kind::Fifo => 6,
        Kind::Socket => 7,
    }
}

/// The kind of a number in a record.
pub(crate) fn kind_of(ino: u8) -> Result<Kind, FormatError> {
    Ok(match in_range("the kind of an object", u64::from(ino), 1, 7)? {
        1 => Kind::Regular,
        2 => Kind::Directory,
        3 => Kind::Symlink,
        4 => Kind::BlockDevice,
        5 => Kind::CharDevice,
        6 => Kind::Fifo,
        _ => Kind::Socket,
    })
}

/// The attributes of an object that its calls set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InodeRecord {
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) accessed: Timestamp,
    pub(crate) modified: Timestamp,
    /// When a call set `modified`. Bytes that were written later count instead.
    pub(crate) modified_set: Timestamp,
    pub(crate) changed: Timestamp,
    /// Counts the changes of this record.
    pub(crate) changes: u64,
    /// Extended attributes may follow in records of their own.
    pub(crate) has_xattrs: bool,
    pub(crate) acls: Acls,
    pub(crate) content: Content,
}

impl InodeRecord {
    pub(crate) fn kind(&self) -> Kind {
        self.content.kind()
    }

    pub(crate) fn key(ino: u64) -> Vec<u8> {
        keyed(b'i', ino)
    }

    /// The key behind an inode and the record right behind it.
    pub(crate) fn end_key(ino: u64) -> Vec<u8> {
        let mut key = Self::key(ino);
        key.push(b'c');
        key
    }

    /// The key of the mark that an object has lost its last name.
    pub(crate) fn unnamed_key(ino: u64) -> Vec<u8> {
        keyed(b'o', ino)
    }

    pub(crate) fn unnamed_keys() -> (Vec<u8>, Vec<u8>) {
        (vec![b'o'], vec![b'o' + 1])
    }

    /// The object of a mark.
    pub(crate) fn unnamed(key: &[u8]) -> Result<u64, FormatError> {
        crate::format::exactly("the key of an unnamed object", key, 9)?;
        Ok(FieldBytes(&key[1..]).u64())
    }

    /// The key of an extended attribute, behind the inode and the body.
    pub(crate) fn xattr_key(ino: u64, name: &[u8]) -> Vec<u8> {
        let mut key = keyed(b'i', ino);
        key.push(b'x');
        key.extend_from_slice(name);
        key
    }

    /// The keys of all extended attributes of an object.
    pub(crate) fn xattr_keys(ino: u64) -> (Vec<u8>, Vec<u8>) {
        let mut end = keyed(b'i', ino);
        end.push(b'x' + 1);
        (Self::xattr_key(ino, b""), end)
    }

    /// The object of an extended attribute's key; nothing for another key.
    pub(crate) fn xattr_owner(key: &[u8]) -> Option<u64> {
        let (ino, rest) = key.get(1..)?.split_first_chunk()?;
        (key[0] == b'i' && rest.first() == Some(&b'x')).then(|| u64::from_be_bytes(*ino))
    }

    /// The name in the key of an extended attribute.
    pub(crate) fn xattr_name(key: &[u8]) -> &[u8] {
        key.get(10..).unwrap_or_default()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(HEAD_BYTES + 16);
        value.push(kind_code(self.kind()));
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let mode = self.mode as u16
            | flag(self.has_xattrs, WITH_XATTRS)
            | flag(self.acls.access.is_some(), WITH_ACCESS_ACL)
            | flag(self.acls.default.is_some(), WITH_DEFAULT_ACL);
        value.extend_from_slice(&mode.to_be_bytes());
        for ino in [self.links, self.uid, self.gid] {
            value.extend_from_slice(&ino.to_be_bytes());
        }
        for time in [self.accessed, self.modified, self.modified_set, self.changed] {
            value.extend_from_slice(&time.seconds.to_be_bytes());
            value.extend_from_slice(&time.nanos.to_be_bytes());
        }
        value.extend_from_slice(&self.changes.to_be_bytes());
        self.acls.encode(&mut value);
        match &self.content {
            Content::Directory { parent, entries } => {
                value.extend_from_slice(&parent.to_be_bytes());
                value.extend_from_slice(&entries.to_be_bytes());
            }
            Content::Symlink(target) => value.extend_from_slice(target),
            Content::BlockDevice { major, minor } | Content::CharDevice { major, minor } => {
                value.extend_from_slice(&major.to_be_bytes());
                value.extend_from_slice(&minor.to_be_bytes());
            }
            Content::Regular | Content::Fifo | Content::Socket => (),
        }
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, FormatError> {
        let most = HEAD_BYTES + Acls::BYTES_MAX + TARGET_BYTES_MAX;
        if value.len() < HEAD_BYTES {
            return Err(FormatError::Length { field: "an inode", found: value.len(), least: HEAD_BYTES, most });
        }
        let mut fields = FieldBytes(value);
        let kind = kind_of(fields.u8())?;
        let mode = u16::from_be_bytes(fields.take());
        let has_xattrs = mode & WITH_XATTRS != 0;
        let (has_access, has_default) = (mode & WITH_ACCESS_ACL != 0, mode & WITH_DEFAULT_ACL != 0);
        let mode = mode & !(WITH_XATTRS | WITH_ACCESS_ACL | WITH_DEFAULT_ACL);
        let mode = in_range("the mode of an inode", u64::from(mode), 0, 0o7777)? as u32;
        let (links, uid, gid) = (fields.u32(), fields.u32(), fields.u32());
        let (accessed, modified) = (time(&mut fields)?, time(&mut fields)?);
        let (modified_set, changed) = (time(&mut fields)?, time(&mut fields)?);
        let changes = fields.u64();
        let acls = Acls::decode(&mut fields, has_access, has_default)?;
        let content = content(kind, fields.rest())?;
        Ok(Self {
            mode,
            links,
            uid,
            gid,
            accessed,
            modified,
            modified_set,
            changed,
            changes,
            has_xattrs,
            acls,
            content,
        })
    }
}

fn keyed(kind: u8, ino: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&ino.to_be_bytes());
    key
}

fn time(fields: &mut FieldBytes<'_>) -> Result<Timestamp, FormatError> {
    let seconds = i64::from_be_bytes(fields.take());
    let nanos = in_range("the nanoseconds of a time", u64::from(fields.u32()), 0, NANOS_MAX)? as u32;
    Ok(Timestamp { seconds, nanos })
}

fn content(kind: Kind, rest: &[u8]) -> Result<Content, FormatError> {
    let exactly = |bytes| crate::format::exactly("the end of an inode", rest, bytes);
    let mut fields = FieldBytes(rest);
    match kind {
        Kind::Directory => {
            exactly(16)?;
            let parent = in_range("the parent of a directory", fields.u64(), ROOT, u64::MAX)?;
            return Ok(Content::Directory { parent, entries: fields.u64() });
        }
        Kind::Symlink => {
            let found = rest.len();
            if !(1..=TARGET_BYTES_MAX).contains(&found) {
                let field = "the target of a symbolic link";
                return Err(FormatError::Length { field, found, least: 1, most: TARGET_BYTES_MAX });
            }
            return Ok(Content::Symlink(Bytes::copy_from_slice(rest)));
        }
        Kind::BlockDevice | Kind::CharDevice => {
            exactly(8)?;
            let (major, minor) = (fields.u32(), fields.u32());
            return Ok(match kind {
                Kind::BlockDevice => Content::BlockDevice { major, minor },
                _ => Content::CharDevice { major, minor },
            });
        }
        Kind::Regular | Kind::Fifo | Kind::Socket => exactly(0)?,
    }
    Ok(match kind {
        Kind::Fifo => Content::Fifo,
        Kind::Socket => Content::Socket,
        _ => Content::Regular,
    })
}

const ENTRY_HEAD_BYTES: usize = 1 + 8 + 4;
const VALUE_BYTES: usize = 9;

/// The record of the number of files. Each change adds to it.
pub(crate) const FILES_KEY: &[u8] = b"Uf";
/// The key behind it.
pub(crate) const FILES_END: &[u8] = b"Ug";

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) ino: u64,
    pub(crate) kind: Kind,
}

impl Entry {
    pub(crate) fn key(parent: u64, name: &[u8]) -> Vec<u8> {
        let mut key = Self::position_key(parent, Window::position(name));
        key.extend_from_slice(name);
        key
    }

    /// The first key of a position.
    pub(crate) fn position_key(parent: u64, position: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(ENTRY_HEAD_BYTES + 32);
        key.push(b'd');
        key.extend_from_slice(&parent.to_be_bytes());
        // Positions are below 2^31, and so is the end of their range.
        key.extend_from_slice(&(position as u32).to_be_bytes());
        key
    }

    /// The directory of an entry, by the key of one that was decoded.
    pub(crate) fn parent(key: &[u8]) -> u64 {
        FieldBytes(&key[1..]).u64()
    }

    pub(crate) fn value(ino: u64, kind: Kind) -> Vec<u8> {
        let mut value = ino.to_be_bytes().to_vec();
        value.push(kind_code(kind));
        value
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self, FormatError> {
        let (least, most) = (ENTRY_HEAD_BYTES + 1, ENTRY_HEAD_BYTES + NAME_BYTES_MAX);
        if !(least..=most).contains(&key.len()) {
            return Err(FormatError::Length { field: "the key of an entry", found: key.len(), least, most });
        }
        let mut fields = FieldBytes(&key[9..]);
        let (position, name) = (u64::from(fields.u32()), fields.rest());
        let expected = Window::position(name);
        crate::format::in_range("the place of a name", position, expected, expected)?;
        exactly("an entry", value, VALUE_BYTES)?;
        let mut fields = FieldBytes(value);
        Ok(Self { name: name.to_vec(), ino: fields.u64(), kind: kind_of(fields.u8())? })
    }
}

#[cfg(test)]
mod tests;
