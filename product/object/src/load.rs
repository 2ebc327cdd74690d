//! The records of a file, read into memory.
//!
//! Owns: the parts of a map that are read.
//! Does not own: their place in memory (`state`).
//! Invariants: records that changed during their scan are read again.

use crate::error::ObjectVolumeError;
use crate::format::extent::StoredExtent;
use crate::format::records::Body;
use crate::open::{ObjectVolume, get};
use crate::seams::{Clock, Durability, Objects, RecordDatabase};

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
