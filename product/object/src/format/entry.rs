//! The record of a directory's entry, and the count of files.
//!
//! Owns: their keys and values, ranges of places.
//! Does not own: the place of a name (`afflux_volume`), attributes (`inode`).
//! Invariants: a directory's records are in the order of its listings.

use afflux_volume::{Kind, NAME_BYTES_MAX, Window};

use super::error::{FormatError, exactly};
use super::fields::FieldBytes;
use super::inode::{kind_number, kind_of};

const HEAD_BYTES: usize = 1 + 8 + 4;
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

    /// The first key of a place.
    pub(crate) fn position_key(parent: u64, position: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(HEAD_BYTES + 32);
        key.push(b'd');
        key.extend_from_slice(&parent.to_be_bytes());
        // Places are below 2^31, and so is the end of their range.
        key.extend_from_slice(&(position as u32).to_be_bytes());
        key
    }

    /// The directory of an entry, by the key of one that was decoded.
    pub(crate) fn parent(key: &[u8]) -> u64 {
        FieldBytes(&key[1..]).u64()
    }

    pub(crate) fn value(ino: u64, kind: Kind) -> Vec<u8> {
        let mut value = ino.to_be_bytes().to_vec();
        value.push(kind_number(kind));
        value
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self, FormatError> {
        let (least, most) = (HEAD_BYTES + 1, HEAD_BYTES + NAME_BYTES_MAX);
        if !(least..=most).contains(&key.len()) {
            return Err(FormatError::Length { field: "the key of an entry", found: key.len(), least, most });
        }
        let mut fields = FieldBytes(&key[9..]);
        let (position, name) = (u64::from(fields.u32()), fields.rest());
        let expected = Window::position(name);
        super::error::in_range("the place of a name", position, expected, expected)?;
        exactly("an entry", value, VALUE_BYTES)?;
        let mut fields = FieldBytes(value);
        Ok(Self { name: name.to_vec(), ino: fields.u64(), kind: kind_of(fields.u8())? })
    }
}

#[cfg(test)]
mod tests;
