//! Conservation: nothing of an engine appears or goes missing, and nothing passes its bound.
//!
//! Owns: the equations between counters, frames and the figures of files and devices; the bounds.
//! Does not own: the engine; the right bytes (the models of files).
//! Invariants: call the checks between two steps of the world. During work only rules that hold at every moment are
//! checked. At rest, no task may hold a page either.

use std::sync::Arc;

use afflux_engine::counters::Counter;
use afflux_engine::{Census, Engine, Platform};

use crate::change::Mismatch;

/// The bounds of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Conservation {
    /// Bytes of tables and indexes for each million bytes of page frames.
    pub metadata_bytes_per_million: u64,
    /// How much later than the law's request a writer's pause may end. Waits for the engine's own limits (a device's
    /// part, the guard of memory) last as long as the device takes.
    pub pause_late_ns_max: Option<u64>,
}

impl Default for Conservation {
    /// 30,000 bytes a million, and no bound on pauses. (The goal of 1.5 % is for large caches; a sparse index needs
    /// more.)
    fn default() -> Self {
        Self { metadata_bytes_per_million: 30_000, pause_late_ns_max: None }
    }
}

/// Bytes for the indexes of small caches and few files, on top of the share.
const METADATA_BYTES_MIN: u64 = 1 << 20;

impl Conservation {
    /// Checks the rules that hold at every moment.
    pub fn check<P: Platform>(&self, engine: &Arc<Engine<P>>) -> Result<(), Mismatch> {
        let (census, status) = (engine.census(), engine.status());
        check_counters(engine, &census)?;
        if census.in_transit() < 0 {
            return wrong(format!("more frames than there are: {census:?}"));
        }
        if census.dirty + census.writeback > census.unwritten + census.unadopted {
            return wrong(format!("pages that no file counts as not yet written: {census:?}"));
        }
        if census.unwritten * PAGE_BYTES > status.dirty_bytes {
            let charged = status.dirty_bytes / PAGE_BYTES;
            return wrong(format!("{} pages are not yet written, charged are {charged}", census.unwritten));
        }
        let metadata_max = METADATA_BYTES_MIN + status.cache_bytes / 1_000_000 * self.metadata_bytes_per_million;
        if status.metadata_bytes > metadata_max {
            return wrong(format!("{} bytes describe the cache, at most {metadata_max}", status.metadata_bytes));
        }
        for device in &status.devices {
            let latest = device.pauses.iter().max_by_key(|pauses| pauses.late_ns_max);
            if let (Some(pauses), Some(max)) = (latest, self.pause_late_ns_max)
                && pauses.late_ns_max > max
            {
                return wrong(format!("device {}: pauses that ended later than {max} ns: {pauses:?}", device.name));
            }
        }
        Ok(())
    }

    /// Checks an engine without callers that has written everything.
    pub fn check_at_rest<P: Platform>(&self, engine: &Arc<Engine<P>>) -> Result<(), Mismatch> {
        self.check(engine)?;
        let (census, status) = (engine.census(), engine.status());
        let left = (census.in_transit(), census.leaving, census.dirty, census.writeback, census.unwritten);
        if left != (0, 0, 0, 0, 0) {
            return wrong(format!("at rest, and not everything is free or clean: {census:?}"));
        }
        let charged = (status.dirty_bytes, status.writeback_bytes, status.pinned_bytes);
        let waiting: u64 = status.devices.iter().map(|device| u64::from(device.writers_waiting)).sum();
        let in_flight: u64 = status.devices.iter().map(|device| device.in_flight as u64).sum();
        if charged != (0, 0, 0) || waiting + in_flight != 0 {
            return wrong(format!("at rest, and something is charged, waiting or in flight: {status:?}"));
        }
        Ok(())
    }
}

const PAGE_BYTES: u64 = 4096;

/// Checks that every page that was dirtied has been written, was cut off, or is still to be written.
fn check_counters<P: Platform>(engine: &Arc<Engine<P>>, census: &Census) -> Result<(), Mismatch> {
    let counters = engine.platform().counters();
    let [dirtied, written, truncated] =
        [Counter::PagesDirtied, Counter::PagesWritten, Counter::PagesTruncated].map(|counter| counters.get(counter));
    if dirtied == written + truncated + census.unwritten {
        return Ok(());
    }
    wrong(format!(
        "{dirtied} pages were dirtied; {written} were written, {truncated} cut off, {} are not yet written",
        census.unwritten
    ))
}

fn wrong(what: String) -> Result<(), Mismatch> {
    Err(Mismatch { what })
}
