//! Scans of many records, some at a time.
//!
//! Owns: the key at which the next scan begins, the number of records of one scan by the bytes of the last.
//! Does not own: the meaning of records.
//! Invariants: a [`PagedScan`] holds no more values than one page has. A user may have made them as large as they may
//! be.

use crate::seams::{Durability, Key, Record, RecordDatabase, RecordsError};

/// A paged scan begins with so many records: their values may be the largest.
const PAGE_MIN: usize = 4;
/// It reads so many at most.
const PAGE_MAX: usize = 512;
/// Later pages have as many records as have so many bytes, by the page before.
const PAGE_BYTES: usize = 256 << 10;

/// The key to go on with after a scan for so many records.
pub(crate) fn next_page(found: &[Record], most: usize, end: &Key) -> Key {
    match found.last() {
        Some((last, _)) if found.len() == most => [last.as_slice(), &[0]].concat(),
        _ => end.clone(),
    }
}

/// A look at all records of a range, some at a time.
pub(crate) struct PagedScan {
    from: Key,
    end: Key,
    durability: Durability,
    most: usize,
}

impl PagedScan {
    pub(crate) fn new((from, end): (Key, Key), durability: Durability) -> Self {
        Self { from, end, durability, most: PAGE_MIN }
    }

    /// The next records; nothing behind the last.
    pub(crate) async fn next(&mut self, records: &impl RecordDatabase) -> Result<Option<Vec<Record>>, RecordsError> {
        if self.from >= self.end {
            return Ok(None);
        }
        let from = std::mem::take(&mut self.from);
        let found = records.scan_first(from, self.end.clone(), self.durability, self.most).await?;
        self.from = next_page(&found, self.most, &self.end);
        let bytes: usize = found.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.most = (PAGE_BYTES * found.len() / bytes.max(1)).clamp(PAGE_MIN, PAGE_MAX);
        Ok(Some(found))
    }
}
