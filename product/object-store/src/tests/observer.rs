//! The knowledge of an observer that receives all answers.
//!
//! Owns: the least stamp of each file, violations.
//! Does not own: the work.
//! Invariants: a file is written whole, with one stamp; later stamps are larger.

use std::collections::BTreeMap;

/// A file's bytes are repeated stamps of this length.
const STAMP_BYTES: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Observer {
    last_stamp: u64,
    /// The newest stamp of each file whose COMMIT was answered.
    answered: BTreeMap<u64, u64>,
    pub(super) commits: u64,
    pub(super) reads: u64,
    pub(super) openings: u64,
    pub(super) violations: Vec<String>,
}

impl Observer {
    /// The stamp of a new write.
    pub(super) fn stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// A COMMIT was answered whose file had this stamp at its beginning.
    pub(super) fn answered(&mut self, file: u64, stamp: u64) {
        let answered = self.answered.entry(file).or_default();
        *answered = stamp.max(*answered);
        self.commits += 1;
    }

    /// The least stamp that a read which begins now may find.
    pub(super) fn least(&self, file: u64) -> u64 {
        self.answered.get(&file).copied().unwrap_or(0)
    }

    /// A read found these bytes.
    pub(super) fn read(&mut self, who: &str, file: u64, bytes: &[u8], least: u64) {
        self.reads += 1;
        let (stamps, _) = bytes.as_chunks::<STAMP_BYTES>();
        let found = stamps.first().map_or(0, |stamp| u64::from_be_bytes(*stamp));
        if stamps.iter().any(|stamp| u64::from_be_bytes(*stamp) != found) {
            self.violations.push(format!("{who}: file {file} is torn"));
        } else if found < least {
            self.violations.push(format!("{who}: file {file} has {found}, but {least} was answered"));
        }
    }
}

/// The bytes of a whole file.
pub(super) fn body(stamp: u64, bytes: usize) -> Vec<u8> {
    stamp.to_be_bytes().repeat(bytes / STAMP_BYTES)
}
