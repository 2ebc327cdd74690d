//! Reads of the writer's own files.
//!
//! Owns: laying unnamed writes over the named map, the second look after a missing segment.
//! Does not own: the cache above, which asks for what it lacks.
//! Invariants: a read sees one state of the map. Bytes are returned only after their checksums matched.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::commit::range;
use crate::error::ObjectVolumeError;
use crate::extents::{ExtentMap, MapChanges};
use crate::file::END;
use crate::format::extent::{Extent, Place, Source};
use crate::format::segment;
use crate::format::segment_id::SEGMENT_BYTES_MAX;
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Clock, ObjectError, Objects, Records};

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    /// The bytes of a range. Holes are zeros.
    ///
    /// # Errors
    /// If the range is longer than 8 MiB, a later writer took over, or the bytes are damaged.
    pub async fn read(&self, ino: u64, start: u64, length: u64) -> Result<Vec<u8>, ObjectVolumeError> {
        range("the length of a read", length, 0, u64::from(SEGMENT_BYTES_MAX))?;
        range("the start of a read", start, 0, END - length)?;
        drop(self.begin()?);
        let mut missing = None;
        loop {
            let Some(extents) = self.view(ino, start, start + length) else {
                self.load(ino, start, start + length).await?;
                continue;
            };
            match self.fetch_all(extents, start, length).await {
                // The extent was replaced meanwhile, and its segment deleted. A second time means damage.
                Err(ObjectVolumeError::Missing(segment)) if missing != Some(segment) => missing = Some(segment),
                read => {
                    if matches!(read, Err(ObjectVolumeError::Missing(_))) {
                        // A successor deletes segments that a fenced writer still names: no damage.
                        self.records.prove().await?;
                    }
                    let bytes = read?;
                    self.may_answer().await?;
                    return Ok(bytes);
                }
            }
        }
    }

    /// The extents of a range with all writes, or nothing if the map must be read.
    fn view(&self, ino: u64, start: u64, end: u64) -> Option<Vec<Extent>> {
        let mut state = self.state();
        let file = state.file(ino);
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

    async fn fetch_all(&self, extents: Vec<Extent>, start: u64, length: u64) -> Result<Vec<u8>, ObjectVolumeError> {
        let mut bytes = vec![0; length as usize];
        let parts = try_join_all(extents.iter().map(|extent| self.part(extent))).await?;
        for (extent, part) in extents.iter().zip(parts) {
            bytes[(extent.start - start) as usize..(extent.end - start) as usize].copy_from_slice(&part);
        }
        Ok(bytes)
    }

    async fn part(&self, extent: &Extent) -> Result<Bytes, ObjectVolumeError> {
        match &extent.source {
            Source::Inline(inline) => Ok(inline.clone()),
            Source::Segment(place) => self.fetch(place, extent.bytes() as u32).await.map(Bytes::from),
        }
    }

    async fn fetch(&self, place: &Place, bytes: u32) -> Result<Vec<u8>, ObjectVolumeError> {
        let (name, lines) = (place.segment.name(), segment::lines(place, bytes));
        let fetched = until_answered(&self.clock, || self.objects.get(&name, lines.clone())).await;
        match fetched {
            Ok(fetched) => Ok(segment::check_lines(place, bytes, &fetched)?),
            Err(ObjectError::Refused(why)) => Err(ObjectVolumeError::Refused(why)),
            Err(_) => Err(ObjectVolumeError::Missing(place.segment)),
        }
    }
}
