//! The map from the bytes of a file to extents.
//!
//! Owns: cutting extents, the changes of records that follow.
//! Does not own: the format of an extent (`format::extent`).
//! Invariants: extents do not overlap, and none is empty.

use std::collections::BTreeMap;

use crate::format::extent::{Extent, Source};
use crate::format::records::SegmentRecord;
use crate::format::segment_id::SegmentId;
use crate::seams::{Batch, Change};

/// Extents by their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtentMap(BTreeMap<u64, Extent>);

/// The changes of one file's records, and of the live bytes of segments.
#[derive(Debug, Default)]
pub(crate) struct MapChanges {
    batch: Batch,
    live: BTreeMap<SegmentId, i64>,
}

impl ExtentMap {
    pub(crate) fn insert(&mut self, extent: Extent) {
        self.0.insert(extent.end, extent);
    }

    /// The extents with bytes in the range, cut to it.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<Extent> {
        let from = self.0.range(start.saturating_add(1)..).map(|(_, extent)| extent);
        let touched = from.take_while(|extent| extent.start < end);
        touched.map(|extent| extent.part(extent.start.max(start), extent.end.min(end))).collect()
    }

    /// Puts an extent, or a hole, in the place of a range.
    pub(crate) fn replace(&mut self, ino: u64, range: (u64, u64), new: Option<Extent>, changes: &mut MapChanges) {
        let (start, end) = range;
        let from = self.0.range(start.saturating_add(1)..);
        let ends: Vec<u64> = from.take_while(|(_, extent)| extent.start < end).map(|(end, _)| *end).collect();
        for old_end in ends {
            let Some(old) = self.0.remove(&old_end) else { continue };
            changes.removed(ino, &old);
            if old.start < start {
                self.add(ino, old.part(old.start, start), changes);
            }
            if end < old.end {
                self.add(ino, old.part(end, old.end), changes);
            }
        }
        if let Some(new) = new {
            self.add(ino, new, changes);
        }
    }

    fn add(&mut self, ino: u64, extent: Extent, changes: &mut MapChanges) {
        changes.added(ino, &extent);
        self.insert(extent);
    }
}

impl MapChanges {
    fn removed(&mut self, ino: u64, extent: &Extent) {
        self.batch.push(Change::Remove(Extent::key(ino, extent.end)));
        self.count(extent, -(extent.bytes() as i64));
    }

    fn added(&mut self, ino: u64, extent: &Extent) {
        self.batch.push(Change::Put(Extent::key(ino, extent.end), extent.value()));
        self.count(extent, extent.bytes() as i64);
    }

    fn count(&mut self, extent: &Extent, bytes: i64) {
        if let Source::Segment(place) = &extent.source {
            *self.live.entry(place.segment).or_default() += bytes;
        }
    }

    /// Makes a segment known to the collector, even if nothing of it is alive.
    pub(crate) fn announce(&mut self, segment: SegmentId) {
        self.live.entry(segment).or_default();
    }

    pub(crate) fn into_batch(mut self) -> Batch {
        for (segment, bytes) in self.live {
            self.batch.push(Change::Add(SegmentRecord::Live.key(segment), bytes));
        }
        self.batch
    }
}
