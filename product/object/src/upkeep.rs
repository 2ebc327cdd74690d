//! The work that a volume needs while it is open.
//!
//! Owns: the times of collection, sweeps and compaction.
//! Does not own: their rules (`collect`, `compact`).
//! Invariants: collection and compaction take at most a sixteenth of the time, so of the bandwidth. A failure of one
//! step keeps no other step from its work, and only the loss of the volume ends the upkeep.

use crate::error::ObjectVolumeError;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordDatabase};

const PAUSE_NS: u64 = 60_000_000_000;
const SWEEP_NS: u64 = 24 * 3_600_000_000_000;
/// A pass of this length is followed by a pause of so many.
const PAUSE_PASSES: u64 = 15;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Collects garbage until the volume closes. Exactly one task of a volume runs it. It tells each failure of a step
    /// to `failed`, and tries the step again in its next pass, a sweep on the next day.
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
