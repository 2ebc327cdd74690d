//! A disk's figures.
//!
//! Owns: the counters, and a bounded sample of requests' positions on the medium.
//! Does not own: a timing's own counts (`timing::Counts`); the display of figures.
//! Invariants: the stored points are evenly spaced in the order of requests.

/// Most samples of requests' positions.
const OFFSETS_MAX: usize = 20_000;

/// A device's figures since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskFigures {
    /// Time with at least one request in flight, in nanoseconds.
    pub busy_ns: u64,
    /// The integral of requests in flight over time; divided by the time it is the mean queue depth.
    pub depth_ns: u128,
    /// Requests in flight now.
    pub depth: u64,
    /// Data requests that ended: reads, writes.
    pub requests: (u64, u64),
    /// Bytes read and written.
    pub bytes: (u64, u64),
    /// Syncs that ended.
    pub syncs: u64,
    /// Head movements, or merges of flash blocks; 0 in models that have neither.
    pub seeks: u64,
    /// Pairs of consecutive writes, in the device's order, that were of different files.
    pub file_switches: u64,
    /// Requests that were merged into others before they went to the device.
    pub merges: u64,
    /// Commands that went to the device.
    pub commands: u64,
    /// Their bytes: divided by `commands`, the mean I/O size after merging.
    pub command_bytes: u64,
}

/// One request on the medium.
#[derive(Clone, Copy, Debug, Default)]
pub struct OffsetSample {
    /// The time of its end.
    pub at_ns: u64,
    /// First byte on the medium.
    pub offset: u64,
    /// Whether it was a write.
    pub write: bool,
}

pub(crate) struct Statistics {
    figures: DiskFigures,
    /// Busy and depth time is counted up to this instant.
    counted_ns: u64,
    offsets: Vec<OffsetSample>,
    /// One of this many requests is sampled.
    every: u64,
    seen: u64,
}

impl Statistics {
    pub(crate) fn new() -> Self {
        Self { figures: DiskFigures::default(), counted_ns: 0, offsets: Vec::new(), every: 1, seen: 0 }
    }

    fn pass_time(&mut self, now_ns: u64) {
        let ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns.max(self.counted_ns);
        if self.figures.depth > 0 {
            self.figures.busy_ns += ns;
            self.figures.depth_ns += u128::from(ns) * u128::from(self.figures.depth);
        }
    }

    /// This many requests are in flight from now on.
    pub(crate) fn depth(&mut self, now_ns: u64, depth: u64) {
        self.pass_time(now_ns);
        self.figures.depth = depth;
    }

    /// A data request ended at a position of the medium.
    pub(crate) fn data(&mut self, now_ns: u64, write: bool, bytes: u64, position: Option<u64>) {
        let figures = &mut self.figures;
        let (requests, moved) = if write {
            (&mut figures.requests.1, &mut figures.bytes.1)
        } else {
            (&mut figures.requests.0, &mut figures.bytes.0)
        };
        *requests += 1;
        *moved += bytes;
        let Some(offset) = position else { return };
        self.seen += 1;
        if !(self.seen - 1).is_multiple_of(self.every) {
            return;
        }
        if self.offsets.len() == OFFSETS_MAX {
            let mut at = 0;
            self.offsets.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
            if !(self.seen - 1).is_multiple_of(self.every) {
                return;
            }
        }
        self.offsets.push(OffsetSample { at_ns: now_ns, offset, write });
    }

    pub(crate) fn sync(&mut self) {
        self.figures.syncs += 1;
    }

    pub(crate) fn figures(&mut self, now_ns: u64) -> DiskFigures {
        self.pass_time(now_ns);
        self.figures
    }

    pub(crate) fn offsets(&self) -> &[OffsetSample] {
        &self.offsets
    }
}

#[cfg(test)]
mod tests;
