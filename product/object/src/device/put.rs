//! Writes of the engine: each followed to its PUT, or to the sync whose batch of records carries its bytes.
//!
//! Owns: waiting for the PUT of one write; how many bytes wait for a sync, of each file and in all.
//! Does not own: which writes share a segment (`packing`), the bytes (the volume), the batch.
//! Invariants: bytes that wait for a COMMIT, which carries them, are in no segment until then. At most 64 KiB of a file
//! wait, and 1 MiB together.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::commit::range;
use crate::error::ObjectVolumeError;
use crate::file::{END, UnnamedContent};
use crate::format::extent::SegmentId;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordDatabase};
use crate::state::VolumeState;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// As [`Self::write`]; returns the number of the write. `is_inline`: the next COMMIT of the file carries the bytes.
    pub(crate) fn take_write(
        &self,
        ino: u64,
        start: u64,
        bytes: Bytes,
        is_inline: bool,
    ) -> Result<u64, ObjectVolumeError> {
        let length = bytes.len() as u64;
        range("the length of a write", length, 1, self.limits.segment_bytes)?;
        range("the start of a write", start, 0, END - length)?;
        let at_ns = self.clock.wall_ns();
        let mut state = self.begin()?;
        let number = state.take(ino, start, start + length, at_ns, UnnamedContent::Buffered(bytes));
        if is_inline {
            state.buffered.remove(&number);
        }
        Ok(number)
    }

    /// Waits until the bytes of a write were PUT.
    pub(crate) async fn put(&self, ino: u64, number: u64) -> Result<(), ObjectVolumeError> {
        loop {
            let segment = {
                let mut state = self.begin()?;
                state.seal(self.records.epoch(), &self.limits)?;
                state.before(ino, number)
            };
            match segment {
                None => return Ok(()),
                Some(segment) => self.upload(segment).await?,
            }
        }
    }
}

impl VolumeState {
    /// Lets segments have a file's bytes up to `cut` that waited for a COMMIT. They are too many for its batch.
    pub(crate) fn release_inline(&mut self, ino: u64, cut: u64) {
        let Some(file) = self.files.get(&ino) else { return };
        let upto = file.writes.iter().take_while(|write| write.id <= cut);
        let inline = upto.filter(|write| matches!(write.content, UnnamedContent::Buffered(_)));
        self.buffered.extend(inline.map(|write| (write.id, ino)));
    }

    /// A segment in flight that delays the write: the write's own segment, or a small one that delays the close of the
    /// open segment.
    fn before(&mut self, ino: u64, number: u64) -> Option<SegmentId> {
        if self.buffered.contains_key(&number) {
            return self.small_on_way().next();
        }
        match &self.files.get_mut(&ino)?.write_mut(number)?.content {
            UnnamedContent::Segment(place, Some(_)) => Some(place.segment),
            _ => None,
        }
    }
}

/// The most bytes of a file.
const FILE_BYTES: u64 = 64 << 10;
/// The most bytes of all files.
const ALL_BYTES: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct InlineBytes {
    files: BTreeMap<u64, u64>,
    bytes: u64,
    syncs: u32,
}

impl InlineBytes {
    /// Whether the bytes may wait for the sync that follows.
    pub(super) fn try_defer(&mut self, ino: u64, bytes: u64) -> bool {
        let file = self.files.get(&ino).copied().unwrap_or(0) + bytes;
        if file > FILE_BYTES || self.bytes + bytes > ALL_BYTES {
            return false;
        }
        self.files.insert(ino, file);
        self.bytes += bytes;
        true
    }

    /// A sync of the file begins; returns the bytes that it carries.
    pub(super) fn sync_begins(&mut self, ino: u64) -> u64 {
        self.syncs += 1;
        self.files.remove(&ino).unwrap_or(0)
    }

    pub(super) fn sync_ends(&mut self, carried: u64) {
        self.syncs -= 1;
        self.bytes -= carried;
    }

    /// Syncs that wait for the store.
    pub(super) fn syncs(&self) -> u32 {
        self.syncs
    }
}
