//! The rescue of live bytes from segments that are mostly garbage.
//!
//! Owns: the choice of segments, the reading of their live bytes.
//! Does not own: the new segment and its names (`moving`), the time for it (`upkeep`).
//! Invariants: a damaged segment is left alone, so its other bytes stay readable at their places.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::error::{ObjectVolumeError, refused};
use crate::format::extent::{ExtentSource, StoredExtent};
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::format::segment::{OBJECT_BYTES_MAX, check_lines, directory, lines};
use crate::format::segment_id::SegmentId;
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Clock, ObjectError, Objects, RecordDatabase};

/// Most segments that one compaction reads.
const VICTIMS_MAX: usize = 16;

/// A file's extent with its bytes.
type Rescued = Vec<(u64, StoredExtent, Bytes)>;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Moves the live bytes of some segments that are less than half alive into one. Returns the bytes.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or records are damaged.
    pub async fn compact(&self) -> Result<u64, ObjectVolumeError> {
        self.finish_move().await?;
        let (mut rescued, mut bytes) = (Rescued::new(), 0);
        for (segment, live) in self.victims().await? {
            if bytes + live > self.limits.segment_bytes {
                break;
            }
            match self.rescue(segment).await {
                Ok(extents) => rescued.extend(extents),
                Err(ObjectVolumeError::Damaged(_) | ObjectVolumeError::Missing(_)) => {
                    self.state().damaged.insert(segment);
                }
                Err(error) => return Err(error),
            }
            // A dead byte never lives again, so these are no more than the scan found.
            bytes = rescued.iter().map(|(_, extent, _)| extent.bytes()).sum();
        }
        if rescued.is_empty() || !self.state().begin_move(self.records.epoch(), rescued)? {
            return Ok(0);
        }
        self.finish_move().await?;
        Ok(bytes)
    }

    /// The segments with the most garbage, and their live bytes.
    async fn victims(&self) -> Result<Vec<(SegmentId, u64)>, ObjectVolumeError> {
        let waiting = self.waiting();
        let (mut from, end) = SegmentRecord::Live.keys();
        let mut victims = BTreeSet::new();
        while from < end {
            let (found, next) = self.segments(SegmentRecord::Live, from).await?;
            for (segment, sum) in found {
                let SegmentBytes { all, live } = SegmentBytes::of(sum);
                if live > 0 && 2 * live < all && !waiting.contains(&segment) && !self.state().damaged.contains(&segment)
                {
                    victims.insert((all - live, segment, live));
                }
                if victims.len() > VICTIMS_MAX {
                    victims.pop_first();
                }
            }
            from = next;
        }
        Ok(victims.into_iter().rev().map(|(_, segment, live)| (segment, live)).collect())
    }

    /// Reads the extents of a segment that files still have.
    async fn rescue(&self, segment: SegmentId) -> Result<Rescued, ObjectVolumeError> {
        let name = segment.name();
        let object = match until_answered(&self.clock, || self.objects.get(&name, 0..OBJECT_BYTES_MAX)).await {
            Err(ObjectError::Missing) => return Err(ObjectVolumeError::Missing(segment)),
            object => object.map_err(refused)?.joined(),
        };
        let mut rescued = Vec::new();
        for entry in directory(segment, &object)? {
            let end = entry.start + u64::from(entry.bytes);
            for extent in self.named(entry.ino, entry.start, end).await? {
                let ExtentSource::Segment(place) = &extent.source else { continue };
                if (place.segment, place.offset) == (segment, entry.offset) {
                    let lines = lines(place, extent.bytes() as u32);
                    let fetched = object.slice(lines.start as usize..lines.end as usize);
                    let bytes = Bytes::from(check_lines(place, extent.bytes() as u32, &fetched)?);
                    rescued.push((entry.ino, extent, bytes));
                }
            }
        }
        Ok(rescued)
    }

    async fn named(&self, ino: u64, start: u64, end: u64) -> Result<Vec<StoredExtent>, ObjectVolumeError> {
        loop {
            self.load(ino, start, end).await?;
            let mut state = self.state();
            let map = &state.file(ino).map;
            if map.gap(start, end).is_none() {
                return Ok(map.within(start, end));
            }
        }
    }
}
