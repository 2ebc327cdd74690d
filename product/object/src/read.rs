//! Reads of the writer's own files.
//!
//! Owns: laying unnamed writes over the named map, the second look after a missing segment.
//! Does not own: the GETs (`device::fetch`); the cache above, which asks for bytes that it lacks.
//! Invariants: a read sees one state of the map. Bytes are returned only after their checksums matched.

use crate::commit::range;
use crate::device::Via;
use crate::error::ObjectVolumeError;
use crate::extents::{ExtentMap, MapChanges};
use crate::file::END;
use crate::format::extent::StoredExtent;
use crate::format::segment_id::SEGMENT_BYTES_MAX;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordDatabase};

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// The bytes of a range. Holes are zeros.
    ///
    /// # Errors
    /// If the range is longer than 8 MiB, a later writer took over, or the bytes are damaged.
    pub async fn read(&self, ino: u64, start: u64, length: u64) -> Result<Vec<u8>, ObjectVolumeError> {
        range("the length of a read", length, 0, u64::from(SEGMENT_BYTES_MAX))?;
        let mut read = vec![0; length as usize];
        let mut copy = |at: usize, bytes: &[u8]| read[at..at + bytes.len()].copy_from_slice(bytes);
        self.read_into(Via::PLAIN, ino, (start, length), &mut copy).await?;
        Ok(read)
    }

    /// As [`Self::read`], on a way of its own. Calls `copy` with the bytes and their place in
    /// the range. The copied bytes hold if the read succeeds.
    pub(crate) async fn read_into(
        &self,
        via: Via<'_>,
        ino: u64,
        (start, length): (u64, u64),
        copy: &mut (impl FnMut(usize, &[u8]) + Send),
    ) -> Result<(), ObjectVolumeError> {
        range("the length of a read", length, 0, u64::from(SEGMENT_BYTES_MAX))?;
        range("the start of a read", start, 0, END - length)?;
        drop(self.begin()?);
        let mut missing = None;
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
}
