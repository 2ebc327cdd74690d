//! One line of a run: its length, and where it lies.
//!
//! Owns: the length of lines, in the run and with their checksums.
//! Does not own: the lines of a run in a row (`segment`, `compression`), their bytes.
//! Invariants: each line of a run but the last has [`LINE_BYTES`] bytes.

/// Bytes of a whole line, without its checksum.
pub const LINE_BYTES: u32 = 65_536;
/// Bytes of a line's checksum.
pub(crate) const CHECKSUM_BYTES: u32 = 4;

/// Bytes of this line of a run.
pub(crate) fn line_bytes(run: u32, number: u32) -> u32 {
    (run - number * LINE_BYTES).min(LINE_BYTES)
}

/// One line in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredLine {
    /// Its offset in the object.
    pub(crate) offset: u64,
    /// Its length there, without the checksum.
    pub(crate) stored: u32,
    /// Its length in the run. A line that is stored in as many bytes is stored raw.
    pub(crate) length: u32,
}

impl StoredLine {
    /// The end of its checksum.
    pub(crate) fn end(&self) -> u64 {
        self.offset + u64::from(self.stored + CHECKSUM_BYTES)
    }
}
