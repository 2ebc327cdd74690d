//! Reads of a file: its records, its bytes, its holes.
//!
//! Owns: the parts of a map that are read into memory; laying unnamed writes over the named map, the second lookup
//! after a missing segment; the walk along the map that finds data and holes, in parts that fit into memory.
//! Does not own: the map (`extents`), its memory (`state`), the GETs (`device::fetch`); the cache above, which asks for
//! bytes that it lacks; pages that the engine has not written yet.
//! Invariants: a read sees one state of the map, and so does each part of a search for holes. Records that changed
//! during their scan are read again. Bytes are returned only after their checksums matched. Bytes whose
//! checksums do not match are asked for once more, past all caches. Time and memory of a search
//! go by the extents that it passes, not by the size of holes.

use std::collections::BTreeSet;

use afflux_volume::Seek;

use crate::commit::range;
use crate::device::Via;
use crate::error::ObjectVolumeError;
use crate::extents::Reach;
use crate::file::END;
use crate::format::extent::{SEGMENT_BYTES_MAX, SegmentId, StoredExtent};
use crate::format::records::Body;
use crate::open::{ObjectVolume, get};
use crate::seams::{Clock, Durability, Objects, RecordDatabase};

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// The bytes of a range. Holes are zeros.
    ///
    /// # Errors
    /// If the range is longer than 8 MiB, a later writer took over, or the bytes are damaged.
    pub async fn read(&self, ino: u64, start: u64, length: u64) -> Result<Vec<u8>, ObjectVolumeError> {
        range("the length of a read", length, 0, u64::from(SEGMENT_BYTES_MAX))?;
        let mut read = vec![0; length as usize];
        let mut copy = |at: usize, bytes: &[u8]| read[at..at + bytes.len()].copy_from_slice(bytes);
        self.read_into(Via::PLAIN, ino, start, length, &mut copy).await?;
        Ok(read)
    }

    /// As [`Self::read`], by GETs of its own. Calls `copy` with the bytes and their offset in the range. The copied
    /// bytes hold if the read succeeds.
    pub(crate) async fn read_into(
        &self,
        via: Via<'_>,
        ino: u64,
        start: u64,
        length: u64,
        copy: &mut (impl FnMut(usize, &[u8]) + Send),
    ) -> Result<(), ObjectVolumeError> {
        range("the length of a read", length, 0, u64::from(SEGMENT_BYTES_MAX))?;
        range("the start of a read", start, 0, END - length)?;
        drop(self.begin()?);
        let (mut missing, mut is_second) = (None, false);
        let mut via = via;
        loop {
            let Some(extents) = self.view(ino, start, start + length) else {
                self.load(ino, start, start + length).await?;
                continue;
            };
            match self.fetch_extents(via, &extents, start..start + length, copy).await {
                // The extent was replaced meanwhile, and its segment deleted. A second time means damage.
                Err(ObjectVolumeError::Missing(segment)) if missing != Some(segment) => {
                    missing = Some(segment);
                    if self.records.is_read_only() {
                        // The view is older than the segment's removal: a process that was stopped for minutes.
                        self.records.prove().await?;
                        self.forget_maps();
                    }
                }
                // The bytes may be damaged in a cache or on their way. The second ones come from the store itself.
                Err(ObjectVolumeError::Damaged(_)) if !is_second => {
                    is_second = true;
                    via.cache = None;
                    let segments: BTreeSet<SegmentId> = extents.iter().filter_map(StoredExtent::segment).collect();
                    segments.iter().for_each(|segment| self.objects.forget(&segment.name()));
                }
                read => {
                    if matches!(read, Err(ObjectVolumeError::Missing(_))) {
                        // A successor deletes segments that a fenced writer still names: no damage.
                        self.records.prove().await?;
                    }
                    read?;
                    return self.wait_to_answer().await;
                }
            }
        }
    }

    /// The extents of a range with all writes, or nothing if the map must be read.
    pub(crate) fn view(&self, ino: u64, start: u64, end: u64) -> Option<Vec<StoredExtent>> {
        self.state().view(ino, start, end)
    }
}

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Reads the map of a range from the records, unless it is in memory.
    pub(crate) async fn load(&self, ino: u64, start: u64, end: u64) -> Result<(), ObjectVolumeError> {
        loop {
            let (gap, stamp) = {
                let mut state = self.state();
                (state.file(ino).map.gap(start, end), state.stamp(ino))
            };
            let Some(gap) = gap else { return Ok(()) };
            let (from, to) = (StoredExtent::key(ino, gap + 1), StoredExtent::keys(ino).1);
            let most = self.limits.window_extents;
            let found = self.records.scan_first(from, to, Durability::Applied, most).await?;
            let extents = found.iter().map(|(key, value)| Ok(StoredExtent::decode(key, value)?.1));
            let extents = extents.collect::<Result<Vec<_>, ObjectVolumeError>>()?;
            let mut state = self.state();
            state.learn(ino, gap, (start, end), stamp, extents, &self.limits);
            state.trim(&self.limits, self.records.durable_through());
        }
    }

    pub(crate) async fn load_body(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        let stamp = self.state().stamp(ino);
        let body = get(&self.records, &Body::key(ino)).await?;
        let body = body.map_or(Ok(Body::default()), |value| Body::decode(&value))?;
        let mut state = self.state();
        if state.stamp(ino) == stamp {
            state.file(ino).body = Some(body);
        }
        Ok(())
    }
}

/// Most extents that are looked at together.
const PART_EXTENTS: usize = 1_024;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// The first offset at or after `from` with data, or in a hole; the end of the file counts as a hole. `None` if
    /// there is none, or if the file ends at or before `from`.
    ///
    /// # Errors
    /// If a later writer took over, or the records are damaged.
    pub async fn seek(&self, ino: u64, from: u64, wanted: Seek) -> Result<Option<u64>, ObjectVolumeError> {
        let (size, mut at) = (self.body(ino).await?.size, from);
        if from >= size {
            return Ok(None);
        }
        while at < size {
            let reach = self.state().file(ino).map.reach(at, size, PART_EXTENTS);
            let end = match reach {
                Reach::Whole => size,
                Reach::Part(end) => end.min(size),
                Reach::Unknown(gap) => gap,
            };
            let extents = if end > at { self.view(ino, at, end) } else { None };
            let Some(extents) = extents else {
                self.load(ino, at, at + 1).await?;
                continue;
            };
            if let Some(found) = first(&extents, at..end, wanted) {
                return Ok(Some(found));
            }
            at = end;
        }
        Ok((wanted == Seek::Hole).then_some(size))
    }
}

/// The first offset of a range with data, or without.
fn first(extents: &[StoredExtent], range: std::ops::Range<u64>, wanted: Seek) -> Option<u64> {
    if wanted == Seek::Data {
        return extents.first().map(|extent| extent.start);
    }
    let mut end = range.start;
    for extent in extents {
        if extent.start > end {
            break;
        }
        end = extent.end;
    }
    // A range with data up to its end leaves the answer to the next part.
    (end < range.end).then_some(end)
}
