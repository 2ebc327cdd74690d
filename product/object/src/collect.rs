//! The collection of segments that nobody needs.
//!
//! Owns: the rule that a segment is dead, the rule that a dead one may go, the sweep of orphans.
//! Does not own: when these run; compaction.
//! Invariants: a dead segment is never named again. It goes after all checkpoints that may show it alive have ended. A
//! sweep removes only segments of earlier epochs: they were never named, and no batch of those epochs will be durable.

use std::collections::BTreeSet;

use crate::control::Rule;
use crate::error::ObjectVolumeError;
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::format::segment_id::SegmentId;
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Change, Clock, Durability, ObjectError, Objects, Records};

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    /// Finds dead segments, and records the newest manifest with each.
    ///
    /// # Errors
    /// If a later writer took over, or the records are damaged.
    pub async fn mark_dead(&self) -> Result<usize, ObjectVolumeError> {
        // A waiting extent may be named, and its batch durable, during the scan. The scan may miss that batch, so
        // the extents that wait before it count.
        let waiting = self.waiting();
        let live = self.segments(SegmentRecord::Live).await?;
        let marked: BTreeSet<_> = self.segments(SegmentRecord::Dead).await?.into_iter().map(|(id, _)| id).collect();
        let waiting = if self.broken.is(Rule::WaitingBeforeScan) { self.waiting() } else { waiting };
        let idle = |segment: &SegmentId| self.broken.is(Rule::WaitingIsAlive) || !waiting.contains(segment);
        let empty =
            live.into_iter().filter(|(_, bytes)| SegmentBytes::of(*bytes).live == 0).map(|(segment, _)| segment);
        let dead: Vec<_> = empty.filter(|segment| idle(segment) && !marked.contains(segment)).collect();
        if dead.is_empty() {
            return Ok(0);
        }
        let newest = self.records.manifest().await?.number.to_be_bytes();
        let put = |segment: &SegmentId| Change::Put(SegmentRecord::Dead.key(*segment), newest.to_vec());
        let sequence = self.records.apply(dead.iter().map(put).collect())?;
        self.records.durable(sequence).await?;
        let now_ns = self.clock.now_ns();
        let mut state = self.state();
        state.dead_at_ns.extend(dead.iter().map(|segment| (*segment, now_ns)));
        Ok(dead.len())
    }

    /// Deletes the dead segments that no checkpoint shows alive.
    ///
    /// # Errors
    /// As [`Self::mark_dead`], or if the store refuses.
    pub async fn delete_dead(&self) -> Result<usize, ObjectVolumeError> {
        let marked = self.segments(SegmentRecord::Dead).await?;
        let oldest = self.records.manifest().await?.checkpoints.iter().map(|checkpoint| checkpoint.manifest).min();
        let now_ns = self.clock.now_ns();
        let mut deleted = Vec::new();
        for (segment, manifest) in marked {
            let since_ns = *self.state().dead_at_ns.entry(segment).or_insert(now_ns);
            let is_seen = oldest.is_some_and(|oldest| oldest <= manifest);
            let may_go = !is_seen && now_ns >= since_ns.saturating_add(self.limits.dead_ns);
            if may_go || self.broken.is(Rule::DeleteAfterCheckpoints) {
                self.delete(segment).await?;
                deleted.push(segment);
            }
        }
        let mut batch = Vec::new();
        for segment in &deleted {
            batch.push(Change::Remove(SegmentRecord::Live.key(*segment)));
            batch.push(Change::Remove(SegmentRecord::Dead.key(*segment)));
        }
        if !batch.is_empty() {
            self.records.durable(self.records.apply(batch)?).await?;
            self.state().dead_at_ns.retain(|segment, _| !deleted.contains(segment));
        }
        Ok(deleted.len())
    }

    /// Deletes segments that earlier writers PUT and never named.
    ///
    /// # Errors
    /// As [`Self::delete_dead`].
    pub async fn sweep_orphans(&self) -> Result<usize, ObjectVolumeError> {
        let names = until_answered(&self.clock, || self.objects.list(SegmentId::FOLDER)).await.map_err(refused)?;
        let known = self.segments(SegmentRecord::Live).await?;
        let known: BTreeSet<SegmentId> = known.into_iter().map(|(segment, _)| segment).collect();
        let mut swept = 0;
        // Objects of other names are not this volume's, and stay.
        for segment in names.iter().filter_map(|name| SegmentId::parse(name).ok()) {
            let is_later = segment.epoch > self.records.epoch() && self.broken.is(Rule::SweepEarlierEpochs);
            if !known.contains(&segment) && (segment.epoch < self.records.epoch() || is_later) {
                self.delete(segment).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn waiting(&self) -> BTreeSet<SegmentId> {
        let durable = self.records.durable_through();
        self.state().waiting(durable)
    }

    async fn segments(&self, kind: SegmentRecord) -> Result<Vec<(SegmentId, u64)>, ObjectVolumeError> {
        let (from, to) = kind.keys();
        let found = self.records.scan(from, to, Durability::Remote).await?;
        Ok(found.iter().map(|(key, value)| kind.decode(key, value)).collect::<Result<_, _>>()?)
    }

    async fn delete(&self, segment: SegmentId) -> Result<(), ObjectVolumeError> {
        let name = segment.name();
        match until_answered(&self.clock, || self.objects.delete(&name)).await {
            Ok(()) | Err(ObjectError::Missing) => Ok(()),
            Err(error) => Err(refused(error)),
        }
    }
}

fn refused(error: ObjectError) -> ObjectVolumeError {
    match error {
        ObjectError::Refused(why) => ObjectVolumeError::Refused(why),
        error => ObjectVolumeError::Refused(format!("{error:?}")),
    }
}
