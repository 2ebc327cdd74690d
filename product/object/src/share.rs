//! Bytes in segments that several files have.
//!
//! Owns: the parts in which a range is shared, the bound on a segment's shared bytes.
//! Does not own: the records of a shared range, which are those of a write (`commit`); the collection of segments
//! (`collect`).
//! Invariants: no byte of a segment moves. One part of a range is taken at one moment: as all earlier calls left the
//! source. Bytes that are in no segment yet get a second one with the target. A segment whose extents have more than
//! [`SHARED_BYTES_MAX`](crate::format::records::SHARED_BYTES_MAX) bytes is shared no more, and its bytes are copied:
//! the sum of live bytes never overflows (`bytes_that_a_segment_can_share_no_more_are_copied`). One range at a time is
//! shared, so no pending part is overlooked. While a scan looks for dead segments, a shared one is noted for it
//! (`CheckedRule::SharedIsAlive`).
//!
//! Compaction finds the file that wrote a segment's bytes, and no other. So a segment that only later files have is
//! left alone until they give it up.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::error::ObjectVolumeError;
use crate::extents::{ExtentMap, MapChanges, Reach};
use crate::file::{Cut, END, UnnamedContent};
use crate::format::extent::{ExtentSource, SegmentId, StoredExtent};
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::open::{ObjectVolume, get};
use crate::seams::{Clock, Objects, RecordDatabase};
use crate::state::VolumeState;

/// Most extents of a part.
const PART_EXTENTS: usize = 1_024;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Gives a range of one file the bytes of another, or of its own; the ranges do not overlap. A target that ends
    /// before grows. In parts of some thousand extents: a kill leaves some of them, from the start. Durable at the
    /// return.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or records are damaged.
    pub async fn share(&self, source: u64, range: Range<u64>, target: u64, to: u64) -> Result<(), ObjectVolumeError> {
        let _alone = self.sharing.lock().await;
        let mut at = range.start;
        while at < range.end {
            let end = self.share_part(source, at..range.end, target, to + (at - range.start)).await?;
            self.commit(target).await?;
            at = end;
        }
        Ok(())
    }

    /// Shares the first part of a range. Returns its end. It is taken when this returns, without a wait in between.
    pub(crate) async fn share_part(
        &self,
        source: u64,
        range: Range<u64>,
        target: u64,
        to: u64,
    ) -> Result<u64, ObjectVolumeError> {
        let mut checked = BTreeSet::new();
        loop {
            let reach = self.begin()?.file(source).map.reach(range.start, range.end, PART_EXTENTS);
            let end = match reach {
                Reach::Whole => range.end,
                Reach::Part(end) => end.min(range.end),
                Reach::Unknown(gap) if gap > range.start => gap,
                Reach::Unknown(_) => {
                    self.load(source, range.start, range.start + 1).await?;
                    continue;
                }
            };
            let at_ns = self.clock.wall_ns();
            let taken = self.begin()?.share(source, range.start..end, (target, to), at_ns, &checked);
            match taken {
                Taken::All => return Ok(end),
                Taken::UnknownMap => self.load(source, range.start, range.start + 1).await?,
                Taken::UnknownBody => self.load_body(target).await?,
                Taken::Unchecked(segments) => {
                    if self.find_crowded(&segments).await?.is_some() {
                        return self.copy_part(source, range.start..end, target, to).await;
                    }
                    checked.extend(segments);
                }
            }
        }
    }

    /// One of these segments that can be shared no more.
    async fn find_crowded(&self, segments: &BTreeSet<SegmentId>) -> Result<Option<SegmentId>, ObjectVolumeError> {
        for segment in segments {
            let key = SegmentRecord::Live.key(*segment);
            let sum =
                get(&self.records, &key).await?.map(|value| SegmentRecord::Live.decode(&key, &value)).transpose()?;
            if sum.is_some_and(|(_, sum)| SegmentBytes::of(sum).live > self.limits.shared_bytes) {
                return Ok(Some(*segment));
            }
        }
        Ok(None)
    }

    /// Copies the first bytes of a range, at most a segment. Returns their end.
    async fn copy_part(&self, source: u64, range: Range<u64>, target: u64, to: u64) -> Result<u64, ObjectVolumeError> {
        let end = range.end.min(range.start + self.limits.segment_bytes);
        let bytes = self.read(source, range.start, end - range.start).await?;
        self.write(target, to, bytes.into())?;
        Ok(end)
    }
}

/// The outcome of a try to share a part.
enum Taken {
    All,
    /// The source's map must be read.
    UnknownMap,
    /// The target's body must be read.
    UnknownBody,
    /// The live bytes of these segments must be looked up.
    Unchecked(BTreeSet<SegmentId>),
}

impl VolumeState {
    fn share(
        &mut self,
        source: u64,
        range: Range<u64>,
        (target, to): (u64, u64),
        at_ns: u64,
        checked: &BTreeSet<SegmentId>,
    ) -> Taken {
        let Some(extents) = self.view(source, range.start, range.end) else { return Taken::UnknownMap };
        let segments: BTreeSet<SegmentId> = extents.iter().filter_map(StoredExtent::segment).collect();
        if !segments.is_subset(checked) {
            return Taken::Unchecked(segments);
        }
        if self.file(target).newest_body().is_none() {
            return Taken::UnknownBody;
        }
        let end = to + (range.end - range.start);
        self.take(target, to, end, at_ns, UnnamedContent::Hole);
        for extent in extents {
            let start = to + (extent.start - range.start);
            let bytes = extent.bytes();
            let content = match extent.source {
                ExtentSource::Segment(place) => UnnamedContent::Segment(place, None),
                ExtentSource::Inline(bytes) => UnnamedContent::Buffered(bytes),
            };
            self.take(target, start, start + bytes, at_ns, content);
        }
        if self.file(target).newest_body().is_some_and(|body| body.size < end) {
            self.take(target, end, END, at_ns, UnnamedContent::Cut(Cut { size: end, is_begun: false }));
        }
        self.shared.extend(segments);
        Taken::All
    }

    /// The extents of a range with all writes, or nothing if the map must be read.
    pub(crate) fn view(&mut self, ino: u64, start: u64, end: u64) -> Option<Vec<StoredExtent>> {
        let file = self.file(ino);
        if file.map.gap(start, end).is_some() {
            return None;
        }
        let mut view = ExtentMap::default();
        file.map.within(start, end).into_iter().for_each(|extent| view.insert(extent));
        for write in file.writes.iter().filter(|write| write.start < end && start < write.end) {
            view.replace(ino, (write.start, write.end), write.readable(), &mut MapChanges::default());
        }
        Some(view.within(start, end))
    }
}
