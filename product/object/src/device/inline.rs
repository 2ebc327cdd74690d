//! Writes that wait for a sync. The sync's batch of records carries the bytes.
//!
//! Owns: how many bytes wait, of each file and in all.
//! Does not own: the bytes (the volume), the batch.
//! Invariants: at most 64 KiB of a file wait, and 1 MiB together.

use std::collections::BTreeMap;

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
