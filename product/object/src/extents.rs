//! The map from the bytes of a file to extents.
//!
//! Owns: cutting extents, the changes of records that follow, the ranges of the map that are in memory.
//! Does not own: the format of an extent (`format::extent`), the limits of memory.
//! Invariants: extents do not overlap, and none is empty. Each is one record, so neighbours that could join stay apart.
//! All extents of a known range are in the map.

use std::collections::{BTreeMap, BTreeSet};

use rangemap::RangeSet;

use crate::format::extent::{ExtentSource, SegmentId, StoredExtent};
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::seams::{Batch, RecordChange};

/// Extents by their ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtentMap {
    extents: BTreeMap<u64, StoredExtent>,
    known: RangeSet<u64>,
    /// The ends of the extents whose bytes are in their records.
    inline: BTreeSet<u64>,
}

/// The search through a range of the map.
pub(crate) enum Reach {
    /// All of it is known, and has few extents.
    Whole,
    /// This end is as far as the extents may be taken together.
    Part(u64),
    /// The map is not in memory from here on.
    Unknown(u64),
}

/// The changes of one file's records, and of the bytes of segments.
#[derive(Debug, Default)]
pub(crate) struct MapChanges {
    batch: Batch,
    segments: BTreeMap<SegmentId, i64>,
    /// The change of the file's used bytes.
    pub(crate) used: i64,
}

impl ExtentMap {
    pub(crate) fn insert(&mut self, extent: StoredExtent) {
        if matches!(extent.source, ExtentSource::Inline(_)) {
            self.inline.insert(extent.end);
        }
        self.extents.insert(extent.end, extent);
    }

    fn remove(&mut self, end: u64) -> Option<StoredExtent> {
        self.inline.remove(&end);
        self.extents.remove(&end)
    }

    /// Takes the extents that the records have from `from` on; all of them to the file's end, or the first ones.
    pub(crate) fn learn(&mut self, from: u64, extents: Vec<StoredExtent>, is_all: bool) {
        let start = extents.first().map_or(from, |first| first.start.min(from));
        let end = if is_all { u64::MAX } else { extents.last().map_or(from, |last| last.end) };
        self.learn_range(start, end);
        extents.into_iter().for_each(|extent| self.insert(extent));
    }

    fn learn_range(&mut self, start: u64, end: u64) {
        if start < end {
            self.known.insert(start..end);
        }
    }

    /// The first byte from `start` to before `end` whose extent is not known.
    pub(crate) fn gap(&self, start: u64, end: u64) -> Option<u64> {
        self.known.gaps(&(start..end)).next().map(|gap| gap.start)
    }

    pub(crate) fn len(&self) -> usize {
        self.extents.len()
    }

    /// Drops all but a range and the inline extents.
    pub(crate) fn forget_all_but(&mut self, start: u64, end: u64) {
        let old = std::mem::take(self);
        let is_kept = |extent: &StoredExtent| extent.start < end && start < extent.end;
        for (_, extent) in old.extents {
            if is_kept(&extent) || old.inline.contains(&extent.end) {
                self.learn_range(extent.start, extent.end);
                self.insert(extent);
            }
        }
        for known in old.known.overlapping(start..end) {
            self.learn_range(known.start.max(start), known.end.min(end));
        }
    }

    /// The inline extents.
    pub(crate) fn inline(&self) -> impl Iterator<Item = &StoredExtent> {
        self.inline.iter().filter_map(|end| self.extents.get(end))
    }

    fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = &StoredExtent> {
        let from = self.extents.range(start.saturating_add(1)..).map(|(_, extent)| extent);
        from.take_while(move |extent| extent.start < end)
    }

    /// The extents with bytes in the range, cut to it.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<StoredExtent> {
        self.touching(start, end).map(|extent| extent.part(extent.start.max(start), extent.end.min(end))).collect()
    }

    /// Searches a range for at most so many extents.
    pub(crate) fn reach(&self, start: u64, end: u64, most: usize) -> Reach {
        let gap = self.gap(start, end);
        let mut touched = self.touching(start, gap.unwrap_or(end)).map(|extent| extent.end);
        let last = touched.by_ref().take(most).last();
        match (touched.next(), gap) {
            (Some(_), _) => Reach::Part(last.unwrap_or(start)),
            (None, Some(gap)) => Reach::Unknown(gap),
            (None, None) => Reach::Whole,
        }
    }

    /// Replaces a range by an extent or a hole.
    pub(crate) fn replace(&mut self, ino: u64, range: (u64, u64), new: Option<StoredExtent>, changes: &mut MapChanges) {
        let (start, end) = range;
        let ends: Vec<u64> = self.touching(start, end).map(|extent| extent.end).collect();
        for old_end in ends {
            let Some(old) = self.remove(old_end) else { continue };
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

    fn add(&mut self, ino: u64, extent: StoredExtent, changes: &mut MapChanges) {
        changes.added(ino, &extent);
        self.insert(extent);
    }
}

impl MapChanges {
    fn removed(&mut self, ino: u64, extent: &StoredExtent) {
        self.push(RecordChange::Remove(StoredExtent::key(ino, extent.end)));
        self.count(extent, -(extent.bytes() as i64));
    }

    fn added(&mut self, ino: u64, extent: &StoredExtent) {
        self.push(RecordChange::Put(StoredExtent::key(ino, extent.end), extent.value()));
        self.count(extent, extent.bytes() as i64);
    }

    fn count(&mut self, extent: &StoredExtent, bytes: i64) {
        self.used += bytes;
        if let ExtentSource::Segment(place) = &extent.source {
            *self.segments.entry(place.segment).or_default() += SegmentBytes::sum(0, bytes);
        }
    }

    pub(crate) fn push(&mut self, change: RecordChange) {
        self.batch.push(change);
    }

    /// Makes a segment known to the collector, even if nothing of it is alive.
    pub(crate) fn announce(&mut self, segment: SegmentId, bytes: u64) {
        *self.segments.entry(segment).or_default() += SegmentBytes::sum(bytes, 0);
    }

    pub(crate) fn len(&self) -> usize {
        self.batch.len() + self.segments.len()
    }

    pub(crate) fn into_batch(mut self) -> Batch {
        for (segment, sum) in self.segments {
            self.batch.push(RecordChange::Add(SegmentRecord::Live.key(segment), sum));
        }
        self.batch
    }
}
