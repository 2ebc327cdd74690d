//! Sets of a page's eight 512-byte sectors.
//!
//! Owns: the arithmetic from byte ranges to sectors and back.
//! Does not own: which sectors of which page are valid or dirty (`table`).
//! Invariants: bit n is the sector from byte 512 n on.

use std::ops::Range;

/// Bytes in a sector, the unit of dirty bytes.
pub const SECTOR_BYTES: usize = 512;

/// A set of sectors of one page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sectors(pub u8);

impl Sectors {
    /// A set without a sector.
    pub const NONE: Self = Self(0);
    /// All sectors of a page.
    pub const ALL: Self = Self(0xff);

    /// The sectors from number `first` up to but without `end`.
    pub fn span(first: usize, end: usize) -> Self {
        debug_assert!(first <= end && end <= 8);
        let below = |n: usize| ((1_u16 << n) - 1) as u8;
        Self(below(end) & !below(first))
    }

    /// The sectors that have at least one byte in the range.
    pub fn touched(bytes: Range<usize>) -> Self {
        if bytes.is_empty() {
            return Self::NONE;
        }
        Self::span(bytes.start / SECTOR_BYTES, bytes.end.div_ceil(SECTOR_BYTES))
    }

    /// The sectors that lie in the range as a whole.
    pub fn covered(bytes: Range<usize>) -> Self {
        let (first, end) = (bytes.start.div_ceil(SECTOR_BYTES), bytes.end / SECTOR_BYTES);
        if first < end { Self::span(first, end) } else { Self::NONE }
    }

    /// Whether it has no sector.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all sectors of `other` are in it.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The sectors of either.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The sectors of both.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Its sectors that are not in `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Number of the lowest sector in the set, 8 if empty.
    pub fn first(self) -> usize {
        self.0.trailing_zeros().min(8) as usize
    }

    /// Number after the highest sector in the set, 0 if empty.
    pub fn end(self) -> usize {
        8 - self.0.leading_zeros() as usize
    }

    /// The numbers of the sectors in the set.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |sector| self.0 & (1 << sector) != 0)
    }

    /// Whether every sector from `first` up to but without `end` is in the set.
    pub fn has_span(self, first: usize, end: usize) -> bool {
        self.contains(Self::span(first, end))
    }
}

#[cfg(test)]
mod tests;
