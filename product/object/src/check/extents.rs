//! The bytes of extents.
//!
//! Owns: the look for the bytes of each extent, the sums over a file's extents.
//! Does not own: segments as a whole (`check`), bodies (`inodes`).
//! Invariants: the bytes of a segment that was read whole are not read again.

use super::{Check, FileRange, ObjectFault, run_mark};
use crate::error::ObjectVolumeError;
use crate::format::extent::{ExtentSource, SegmentRange, StoredExtent};
use crate::format::segment::{LINE_BYTES, check_lines, lines};
use crate::seams::{Clock, Objects, RecordDatabase};

/// The sums over one file's extents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtentSums {
    pub(super) used: u64,
    pub(super) end: u64,
    pub(super) overlap: bool,
}

impl ExtentSums {
    pub(super) fn add(&mut self, extent: &StoredExtent) {
        self.overlap |= extent.start < self.end;
        self.used = self.used.saturating_add(extent.bytes());
        self.end = extent.end;
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> Check<'_, O, R, C> {
    pub(super) async fn extent(&mut self, ino: u64, extent: &StoredExtent) {
        self.report.extents += 1;
        let ExtentSource::Segment(place) = &extent.source else { return };
        self.live.entry(place.segment).or_default().1 += extent.bytes();
        let start = extent.start.wrapping_sub(u64::from(place.skipped));
        let runs = self.runs.get(&place.segment);
        let is_readable = runs.is_some_and(|runs| runs.binary_search(&run_mark(ino, start, place)).is_ok());
        if is_readable || self.report.unread.contains_key(&place.segment) {
            return;
        }
        let was_read_whole = runs.is_some();
        let unreadable = self.read_lines(ino, extent, place).await;
        if unreadable == 0 && was_read_whole && self.report.faults.last() != Some(&(ino, ObjectFault::ForeignBytes)) {
            self.report.faults.push((ino, ObjectFault::ForeignBytes));
        }
    }

    /// Reads an extent line by line, and notes those that cannot be read. Returns their number.
    async fn read_lines(&mut self, ino: u64, extent: &StoredExtent, place: &SegmentRange) -> u64 {
        let (mut start, mut unreadable) = (extent.start, 0);
        while start < extent.end {
            let skipped = place.skipped + (start - extent.start) as u32;
            let end = extent.end.min(start + u64::from(LINE_BYTES - skipped % LINE_BYTES));
            if let Err(error) = self.line(&SegmentRange { skipped, ..*place }, (end - start) as u32).await {
                unreadable += 1;
                self.note_unreadable(place, error, FileRange { ino, start, end });
            }
            start = end;
        }
        unreadable
    }

    async fn line(&self, line: &SegmentRange, bytes: u32) -> Result<(), ObjectVolumeError> {
        let fetched = self.get(line.segment, lines(line, bytes)).await?;
        check_lines(line, bytes, &fetched)?;
        Ok(())
    }

    fn note_unreadable(&mut self, place: &SegmentRange, error: ObjectVolumeError, range: FileRange) {
        if !matches!(error, ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_)) {
            self.report.unread.insert(place.segment, error.to_string());
            return;
        }
        let (_, ranges) = self.report.damaged.entry(place.segment).or_insert((error, Vec::new()));
        match ranges.last_mut().filter(|last| last.ino == range.ino && last.end == range.start) {
            Some(last) => last.end = range.end,
            None => ranges.push(range),
        }
    }
}
