//! The work that a volume needs while it is open.
//!
//! Owns: the times of collection, sweeps and compaction.
//! Does not own: their rules (`collect`, `compact`).
//! Invariants: collection and compaction take at most a sixteenth of the time, so of the bandwidth.

use crate::error::ObjectVolumeError;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, Records};

const PAUSE_NS: u64 = 60_000_000_000;
const SWEEP_NS: u64 = 24 * 3_600_000_000_000;
/// A pass of this length is followed by a pause of so many.
const PAUSE_PASSES: u64 = 15;

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    /// Collects garbage until the volume closes. Exactly one task of a volume runs it.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or records are damaged.
    pub async fn upkeep(&self) -> Result<(), ObjectVolumeError> {
        let mut sweep_at_ns = self.clock.now_ns();
        while self.begin().is_ok() {
            let begun_ns = self.clock.now_ns();
            if begun_ns >= sweep_at_ns {
                self.sweep_orphans().await?;
                sweep_at_ns = begun_ns.saturating_add(SWEEP_NS);
            }
            self.mark_dead().await?;
            self.delete_dead().await?;
            let is_inline_full = self.state().is_inline_full(&self.limits);
            if is_inline_full {
                self.pack().await?;
            }
            let moved = self.compact().await?;
            let end_ns = self.clock.now_ns();
            let pause_ns = (end_ns - begun_ns).saturating_mul(PAUSE_PASSES);
            let pause_ns = if moved > 0 { pause_ns } else { pause_ns.max(PAUSE_NS) };
            self.clock.sleep_until_ns(end_ns.saturating_add(pause_ns)).await;
        }
        Ok(())
    }
}
