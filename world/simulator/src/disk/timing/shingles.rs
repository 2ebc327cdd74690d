//! Shingled tracks of a rotating disk: writes out of order go to a cache zone first.
//!
//! Tracks overlap, so a band can only be written from its start. A write that continues the previous one stays in its
//! band. Any other write is appended to a cache zone at the outer edge, which is fast. Once the zone is full, each
//! incoming byte needs free space: a band is read, merged and written again, which makes a write `cleaning_factor`
//! times as long. While the disk is idle it empties the zone, at the rate that this factor leaves. (Seen from outside:
//! A. Aghayev, P. Desnoyers, "Skylight", FAST 2015.) As a simplification, reads of bytes still in the zone are served
//! from the band.
//!
//! Owns: the fill level of the zone.
//! Does not own: the head (`rotating`).
//! Invariants: the zone never holds more than its size.

use super::seam::Span;

#[derive(Clone, Debug)]
pub(crate) struct ShingleParameters {
    pub(crate) cache_bytes: u64,
    /// How many times as long a write takes once the zone is full; at least 1.
    pub(crate) cleaning_factor: u64,
    /// Idle time before the disk empties the zone.
    pub(crate) idle_ns: u64,
}

pub(super) struct Shingles {
    pub(super) parameters: ShingleParameters,
    used_bytes: u64,
    /// The position in the zone of the next write.
    append: u64,
    /// The end of the last write.
    stream_end: u64,
}

/// A write's position, and the factor by which it is slowed down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    pub(super) position: u64,
    pub(super) factor: u64,
}

impl Shingles {
    pub(super) fn new(parameters: ShingleParameters) -> Self {
        Self { parameters, used_bytes: 0, append: 0, stream_end: u64::MAX }
    }

    /// The position on the platters, behind the zone, of a position of the disk.
    pub(super) fn behind_zone(&self, position: u64) -> u64 {
        position + self.parameters.cache_bytes
    }

    pub(super) fn write(&mut self, span: Span) -> Placement {
        let follows = span.position == self.stream_end;
        self.stream_end = span.position + span.len;
        if follows {
            return Placement { position: self.behind_zone(span.position), factor: 1 };
        }
        let bytes = self.parameters.cache_bytes;
        if self.append + span.len > bytes {
            self.append = 0;
        }
        let position = self.append;
        self.append += span.len;
        let full = self.used_bytes + span.len > bytes;
        self.used_bytes = (self.used_bytes + span.len).min(bytes);
        Placement { position, factor: if full { self.parameters.cleaning_factor } else { 1 } }
    }

    /// The disk was idle for this long, and can write at this rate.
    pub(super) fn idle(&mut self, idle_ns: u64, bytes_per_second: u64) {
        let cleaning_ns = idle_ns.saturating_sub(self.parameters.idle_ns);
        let rate = bytes_per_second / self.parameters.cleaning_factor.saturating_sub(1).max(1);
        let bytes = u128::from(cleaning_ns) * u128::from(rate) / 1_000_000_000;
        self.used_bytes = self.used_bytes.saturating_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}
