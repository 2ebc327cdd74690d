//! Parts that the data core does not have yet: a body, its record, the reaping of an object.
//!
//! Owns: a body, its record.
//! Does not own: the bytes.
//! Invariants: the record of a body stands right behind the inode's.

use crate::error::ObjectVolumeError;
use crate::format::error::{FormatError, exactly};
use crate::format::fields::Fields;
use crate::format::inode::Inode;
use crate::open::ObjectVolume;
use crate::seams::{Change, Clock, Objects, Records};

/// Record `i` ino `b`: a file's bytes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Body {
    /// The end of the file.
    pub size: u64,
    /// Bytes that are no holes.
    pub used: u64,
    /// The time of day of the last change of bytes or size.
    pub changed_ns: u64,
}

/// The body of a file as far as memory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyInMemory {
    /// This is the newest.
    Newest(Body),
    /// The newest is the one in the record, or empty without a record.
    AsStored,
    /// The record must be read first: writes change the body in it.
    Unread,
}

impl Body {
    pub(crate) fn key(ino: u64) -> Vec<u8> {
        let mut key = Inode::key(ino);
        key.push(b'b');
        key
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, FormatError> {
        exactly("a body", value, 24)?;
        let mut fields = Fields(value);
        Ok(Self { size: fields.u64(), used: fields.u64(), changed_ns: fields.u64() })
    }
}

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    pub(crate) fn body_in_memory(&self, _ino: u64) -> BodyInMemory {
        BodyInMemory::AsStored
    }

    pub(crate) async fn body(&self, _ino: u64) -> Result<Body, ObjectVolumeError> {
        Ok(Body::default())
    }

    pub(crate) fn wall_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Removes an object's records.
    pub(crate) async fn reap(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        let keys = [Inode::key(ino), Body::key(ino), Inode::unnamed_key(ino)];
        self.records.apply(keys.into_iter().map(Change::Remove).collect())?;
        Ok(())
    }
}
