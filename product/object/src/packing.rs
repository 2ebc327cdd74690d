//! Segments from the first byte to the answer of their PUT.
//!
//! Owns: which writes share a segment, the time at which it closes.
//! Does not own: the requests (`retry`), the records.
//! Invariants: a number of a segment is used once. The writes of a segment are in the order of their calls. The
//! location of a write is known from the answer of the PUT on: before, nobody knows how long compressed runs are.

use std::collections::BTreeSet;

use crate::error::ObjectVolumeError;
use crate::extents::MapChanges;
use crate::file::UnnamedContent;
use crate::format::extent::{ExtentSource, SegmentId, SegmentRange};
use crate::retry::{OnWay, SegmentRun, Upload, WriteInSegment};
use crate::seams::Batch;
use crate::state::{VolumeLimits, VolumeState};

/// A write of this part of a segment is a segment of its own.
const LARGE_PART: u64 = 8;
/// Small segments in flight that delay the close of the open one.
const SMALL_ON_WAY: usize = 2;

impl VolumeState {
    /// Closes full segments, and the open one unless enough small ones are in flight.
    pub(crate) fn seal(&mut self, epoch: u32, limits: &VolumeLimits) -> Result<(), ObjectVolumeError> {
        let (mut open, mut open_bytes) = (Vec::new(), 0);
        let buffered: Vec<(u64, u64)> = self.buffered.iter().map(|(write_id, ino)| (*ino, *write_id)).collect();
        for (ino, write_id) in buffered {
            let length =
                self.files.get_mut(&ino).and_then(|file| file.write_mut(write_id)).map_or(0, |w| w.data_bytes());
            if length >= limits.segment_bytes / LARGE_PART {
                self.close(epoch, vec![(ino, write_id)], false)?;
                continue;
            }
            if open_bytes + length > limits.segment_bytes {
                self.close(epoch, std::mem::take(&mut open), false)?;
                open_bytes = 0;
            }
            open.push((ino, write_id));
            open_bytes += length;
        }
        if !open.is_empty() && self.small_on_way().count() < SMALL_ON_WAY {
            self.close(epoch, open, true)?;
        }
        Ok(())
    }

    pub(crate) fn small_on_way(&self) -> impl Iterator<Item = SegmentId> {
        self.uploads.iter().filter(|(_, on_way)| on_way.is_small).map(|(segment, _)| *segment)
    }

    /// Gives buffered writes their offsets in a new segment.
    fn close(&mut self, epoch: u32, writes: Vec<(u64, u64)>, is_small: bool) -> Result<(), ObjectVolumeError> {
        let segment = self.new_segment(epoch)?;
        let (mut runs, mut in_segment) = (Vec::new(), Vec::new());
        for (ino, write_id) in writes {
            self.buffered.remove(&write_id);
            let Some(write) = self.files.get_mut(&ino).and_then(|file| file.write_mut(write_id)) else { continue };
            let UnnamedContent::Buffered(run) = &write.content else { continue };
            in_segment.push(WriteInSegment { ino, write_id, run: runs.len() });
            runs.push(SegmentRun { ino, start: write.start, bytes: run.clone() });
            write.content = UnnamedContent::Segment(SegmentRange::unplaced(segment, run.len()), Some(run.clone()));
        }
        self.begin_upload(segment, runs, is_small, in_segment);
        Ok(())
    }

    pub(crate) fn new_segment(&mut self, epoch: u32) -> Result<SegmentId, ObjectVolumeError> {
        let segment = SegmentId::new(epoch, self.next_segment)?;
        self.next_segment += 1;
        Ok(segment)
    }

    pub(crate) fn begin_upload(
        &mut self,
        segment: SegmentId,
        runs: Vec<SegmentRun>,
        is_small: bool,
        writes: Vec<WriteInSegment>,
    ) {
        let bytes = runs.iter().map(|run| run.bytes.len() as u64).sum();
        self.uploads.insert(segment, OnWay { upload: Upload::new(segment, runs), bytes, is_small, writes });
    }

    /// Notes that the PUT of a segment was answered. Its runs lie at these places.
    pub(crate) fn uploaded(&mut self, segment: SegmentId, places: &[SegmentRange]) {
        let Some(on_way) = self.uploads.remove(&segment) else { return };
        self.unannounced.push_back((segment, on_way.bytes));
        for WriteInSegment { ino, write_id, run } in on_way.writes {
            let write = self.files.get_mut(&ino).and_then(|file| file.write_mut(write_id));
            if let Some(UnnamedContent::Segment(place, bytes)) = write.map(|write| &mut write.content) {
                (*place, *bytes) = (places[run].clone(), None);
            }
        }
        if let Some(moving) = self.moving.as_mut().filter(|moving| moving.segment == segment) {
            for (step, place) in moving.moves.iter_mut().zip(places) {
                step.new.source = ExtentSource::Segment(place.clone());
            }
        }
    }

    /// Makes all segments that were PUT known to the collector.
    pub(crate) fn announce_all(&mut self) -> Batch {
        let mut changes = MapChanges::default();
        self.unannounced.drain(..).for_each(|(segment, bytes)| changes.announce(segment, bytes));
        changes.into_batch()
    }

    /// Forgets a file's writes in a segment in flight. Nobody waits for a segment without writes.
    pub(crate) fn give_up(&mut self, segment: SegmentId, ino: u64) {
        let Some(on_way) = self.uploads.get_mut(&segment) else { return };
        on_way.writes.retain(|write| write.ino != ino);
        if on_way.writes.is_empty() {
            self.uploads.remove(&segment);
            self.given_up.insert(segment);
        }
    }

    /// Closes segments until a file's writes up to `cut` fit into a batch. Returns segments whose PUT must be answered
    /// first.
    pub(crate) fn unsent(
        &mut self,
        ino: u64,
        cut: u64,
        epoch: u32,
        limits: &VolumeLimits,
    ) -> Result<BTreeSet<SegmentId>, ObjectVolumeError> {
        let (buffered, on_way) = self.file(ino).unsent(cut);
        // The bytes in records stay in memory until they are moved, so they have a bound.
        let is_room = self.inline_bytes < 2 * limits.segment_bytes;
        if buffered == 0 || (buffered <= limits.inline_bytes && is_room) {
            return Ok(on_way);
        }
        self.release_inline(ino, cut);
        self.seal(epoch, limits)?;
        let (buffered, mut on_way) = self.file(ino).unsent(cut);
        if buffered > 0 {
            on_way.extend(self.small_on_way());
        }
        Ok(on_way)
    }

    /// The same for all files.
    pub(crate) fn unsent_of_all(
        &mut self,
        cut: u64,
        epoch: u32,
        limits: &VolumeLimits,
    ) -> Result<BTreeSet<SegmentId>, ObjectVolumeError> {
        self.seal(epoch, limits)?;
        let is_old = |on_way: &OnWay| on_way.writes.first().is_some_and(|write| write.write_id <= cut);
        let is_open = self.buffered.first_key_value().is_some_and(|(write_id, _)| *write_id <= cut);
        let needed = self.uploads.iter().filter(|(_, on_way)| is_old(on_way) || (is_open && on_way.is_small));
        Ok(needed.map(|(segment, _)| *segment).collect())
    }
}
