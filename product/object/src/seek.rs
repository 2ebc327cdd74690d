//! Where a file has data, and where it has holes.
//!
//! Owns: the way along the map in parts that fit into memory.
//! Does not own: the map (`extents`), pages that the engine has not written yet.
//! Invariants: each part is one state of the map. Time and memory go by the extents on the way, not by the size of
//! holes.

use afflux_volume::Seek;

use crate::error::ObjectVolumeError;
use crate::extents::Reach;
use crate::format::extent::StoredExtent;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordDatabase};

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
