//! The collection of segments that nobody needs, and the other work that a volume needs while it is open.
//!
//! Owns: the rule that a segment is dead, the rule that a dead one may go, the sweep of orphans; the times of
//! collection, sweeps and compaction.
//! Does not own: the rescue of live bytes (`compact`).
//! Invariants: a dead segment is never named again. It goes after all checkpoints that may show it alive have ended. A
//! sweep removes segments of earlier epochs that were never named, and no batch of those epochs will be durable. Of the
//! own epoch it removes only segments that this process gave up. Collection and compaction take at most a sixteenth of
//! the time, so of the bandwidth. A failure of one step prevents no other step, and only the loss of the volume ends
//! the upkeep.

use std::collections::BTreeSet;

use crate::control::CheckedRule;
use crate::error::{ObjectVolumeError, refused};
use crate::format::FormatError;
use crate::format::extent::SegmentId;
use crate::format::records::{SegmentBytes, SegmentRecord};
use crate::open::ObjectVolume;
use crate::retry::until_answered;
use crate::seams::{Batch, Clock, Durability, Key, ObjectError, Objects, RecordChange, RecordDatabase, next_page};

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Finds dead segments, and records the newest manifest with each.
    ///
    /// # Errors
    /// If a later writer took over, or the records are damaged.
    pub async fn mark_dead(&self) -> Result<usize, ObjectVolumeError> {
        let announced = self.state().announce_all();
        self.apply_all(announced).await?;
        let (mut from, end) = SegmentRecord::Live.keys();
        let mut count = 0;
        while from < end {
            // A waiting extent may be named, and its batch durable, during the scan. The scan may miss that batch, so
            // the extents that wait before it count.
            self.state().shared.clear();
            let waiting = self.waiting();
            let (live, next) = self.segments(SegmentRecord::Live, from).await?;
            let waiting = if self.broken.is(CheckedRule::WaitingBeforeScan) { self.waiting() } else { waiting };
            let idle = |segment: &SegmentId| self.broken.is(CheckedRule::WaitingIsAlive) || !waiting.contains(segment);
            // Files may have got further extents there, and the last earlier one may be gone, since the scan began.
            let shared = std::mem::take(&mut self.state().shared);
            let shared = if self.broken.is(CheckedRule::SharedIsAlive) { BTreeSet::new() } else { shared };
            let empty = live.into_iter().filter(|(_, sum)| SegmentBytes::of(*sum).live == 0);
            let mut dead: BTreeSet<_> = empty.map(|(segment, _)| segment).filter(idle).collect();
            dead.retain(|segment| !shared.contains(segment));
            for marked in self.marked(&dead).await? {
                dead.remove(&marked);
            }
            count += dead.len();
            self.mark(dead).await?;
            from = next;
        }
        Ok(count)
    }

    async fn mark(&self, dead: BTreeSet<SegmentId>) -> Result<(), ObjectVolumeError> {
        if dead.is_empty() {
            return Ok(());
        }
        let newest = self.records.manifest().await?.id.to_be_bytes();
        let put = |segment: &SegmentId| RecordChange::Put(SegmentRecord::Dead.key(*segment), newest.to_vec());
        self.apply_all(dead.iter().map(put).collect()).await?;
        let now_ns = self.clock.now_ns();
        self.state().dead_at_ns.extend(dead.iter().map(|segment| (*segment, now_ns)));
        Ok(())
    }

    /// The marks from the first to the last of these segments.
    async fn marked(&self, segments: &BTreeSet<SegmentId>) -> Result<Vec<SegmentId>, ObjectVolumeError> {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(Vec::new()) };
        let mut after = SegmentRecord::Dead.key(*last);
        after.push(0);
        let found = self.records.scan(SegmentRecord::Dead.key(*first), after, Durability::Applied).await?;
        Ok(found
            .iter()
            .map(|(key, value)| Ok(SegmentRecord::Dead.decode(key, value)?.0))
            .collect::<Result<_, FormatError>>()?)
    }

    /// Deletes the dead segments that no checkpoint shows alive.
    ///
    /// # Errors
    /// As [`Self::mark_dead`], or if the store refuses.
    pub async fn delete_dead(&self) -> Result<usize, ObjectVolumeError> {
        let (mut from, end) = SegmentRecord::Dead.keys();
        let mut count = 0;
        while from < end {
            let (marked, next) = self.segments(SegmentRecord::Dead, from).await?;
            let oldest = self.records.manifest().await?.checkpoints.iter().map(|checkpoint| checkpoint.manifest).min();
            let mut batch = Vec::new();
            for (segment, manifest) in marked {
                if self.may_go(segment, manifest, oldest) {
                    self.delete(segment).await?;
                    batch.push(RecordChange::Remove(SegmentRecord::Live.key(segment)));
                    batch.push(RecordChange::Remove(SegmentRecord::Dead.key(segment)));
                    self.state().dead_at_ns.remove(&segment);
                    count += 1;
                }
            }
            self.apply_all(batch).await?;
            from = next;
        }
        Ok(count)
    }

    fn may_go(&self, segment: SegmentId, manifest: u64, oldest: Option<u64>) -> bool {
        let now_ns = self.clock.now_ns();
        let since_ns = *self.state().dead_at_ns.entry(segment).or_insert(now_ns);
        let is_seen = oldest.is_some_and(|oldest| oldest <= manifest);
        let is_old = now_ns >= since_ns.saturating_add(self.limits.dead_ns);
        (!is_seen || self.broken.is(CheckedRule::DeleteAfterCheckpoints))
            && (is_old || self.broken.is(CheckedRule::DeleteAfterPause))
    }

    /// Deletes segments that were PUT and never named, as far as no writer can name them any more.
    ///
    /// # Errors
    /// As [`Self::delete_dead`].
    pub async fn sweep_orphans(&self) -> Result<usize, ObjectVolumeError> {
        let names = until_answered(&self.clock, || self.objects.list(SegmentId::FOLDER)).await.map_err(refused)?;
        // Objects of other names are not this volume's, and stay.
        let segments = names.iter().filter_map(|name| SegmentId::parse(name).ok());
        let mut orphans: BTreeSet<SegmentId> = segments.filter(|segment| self.is_nobodys(segment)).collect();
        let (mut from, end) = SegmentRecord::Live.keys();
        while from < end && !orphans.is_empty() {
            let (known, next) = self.segments(SegmentRecord::Live, from).await?;
            for (segment, _) in known {
                orphans.remove(&segment);
            }
            from = next;
        }
        for segment in &orphans {
            self.delete(*segment).await?;
        }
        Ok(orphans.len())
    }

    /// No writer will name this segment if no durable record knows it.
    fn is_nobodys(&self, segment: &SegmentId) -> bool {
        let own = self.records.epoch();
        let is_later = segment.epoch > own && self.broken.is(CheckedRule::SweepEarlierEpochs);
        let is_own = segment.epoch == own && self.broken.is(CheckedRule::SweepGivenUp);
        segment.epoch < own || self.state().given_up.contains(segment) || is_later || is_own
    }

    pub(crate) fn waiting(&self) -> BTreeSet<SegmentId> {
        let durable = self.records.durable_through();
        self.state().waiting(durable)
    }

    /// Some durable records of a kind, and the key to go on with.
    pub(crate) async fn segments(
        &self,
        kind: SegmentRecord,
        from: Key,
    ) -> Result<(Vec<(SegmentId, u64)>, Key), ObjectVolumeError> {
        let (end, most) = (kind.keys().1, self.limits.window_extents);
        let found = self.records.scan_first(from, end.clone(), Durability::Remote, most).await?;
        let next = next_page(&found, most, &end);
        let found = found.iter().map(|(key, value)| kind.decode(key, value));
        Ok((found.collect::<Result<_, _>>()?, next))
    }

    /// Makes changes durable that may become so apart, but for neighbours of two.
    async fn apply_all(&self, changes: Batch) -> Result<(), ObjectVolumeError> {
        for batch in changes.chunks(self.limits.batch_changes / 2 * 2) {
            self.records.durable(self.records.apply(batch.to_vec())?).await?;
        }
        Ok(())
    }

    async fn delete(&self, segment: SegmentId) -> Result<(), ObjectVolumeError> {
        let name = segment.name();
        match until_answered(&self.clock, || self.objects.delete(&name)).await {
            Ok(()) | Err(ObjectError::Missing) => Ok(()),
            Err(error) => Err(refused(error)),
        }
    }
}

const PAUSE_NS: u64 = 60_000_000_000;
const SWEEP_NS: u64 = 24 * 3_600_000_000_000;
/// A pass of this length is followed by a pause of so many.
const PAUSE_PASSES: u64 = 15;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Collects garbage until the volume closes. Exactly one task of a volume runs it. It reports each failure of a
    /// step to `failed`, and tries the step again in its next pass, a sweep on the next day.
    ///
    /// # Errors
    /// If the volume is lost to this writer.
    pub async fn upkeep(&self, mut failed: impl FnMut(&ObjectVolumeError) + Send) -> Result<(), ObjectVolumeError> {
        let mut sweep_at_ns = self.clock.now_ns();
        while self.begin().is_ok() {
            let begun_ns = self.clock.now_ns();
            let is_sweep = begun_ns >= sweep_at_ns;
            let swept = if is_sweep { self.sweep_orphans().await } else { Ok(0) };
            if is_sweep {
                sweep_at_ns = begun_ns.saturating_add(SWEEP_NS);
            }
            let check_inline_full = self.state().check_inline_full(&self.limits);
            let packed = if check_inline_full { self.pack().await } else { Ok(()) };
            let steps = [swept.map(drop), self.mark_dead().await.map(drop), self.delete_dead().await.map(drop), packed];
            let moved = self.compact().await;
            for error in steps.iter().chain([&moved.clone().map(drop)]).filter_map(|step| step.as_ref().err()) {
                if error.is_loss() {
                    return Err(error.clone());
                }
                failed(error);
            }
            let end_ns = self.clock.now_ns();
            let pause_ns = (end_ns - begun_ns).saturating_mul(PAUSE_PASSES);
            let pause_ns = if moved.is_ok_and(|bytes| bytes > 0) { pause_ns } else { pause_ns.max(PAUSE_NS) };
            self.clock.sleep_until_ns(end_ns.saturating_add(pause_ns)).await;
        }
        Ok(())
    }
}
