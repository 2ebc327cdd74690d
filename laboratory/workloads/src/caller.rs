//! Costs of a read or a write to its caller besides the engine's work: the call, and copies from memory.
//!
//! The engine's own costs assume pages in the CPU's cache. Tags, in sets of eight, model that cache by page: a copied
//! page replaces the least recently used page of its set. The order of pages matters as much, since the CPU prefetches
//! during a sequential read.
//!
//! Owns: the tags, the sums.
//! Does not own: the figures (`costs`), the clock that they are charged to.
//! Invariants: the same calls in the same order cost the same. One cache for all virtual CPUs.

#[cfg(test)]
mod tests;

use afflux_simulator::{CallerCost, CostTable};

/// Bytes of the CPU's cache, which the cores of one complex share on the standard table's machine. Its copies within 8
/// MiB were measured as cached, those within 256 MiB as not.
pub(crate) const CPU_CACHE_BYTES: u64 = 32 << 20;
const PAGE_BYTES: u64 = 4096;
/// Tags in a set.
const DIRECTIONS: usize = 8;
const SETS: usize = (CPU_CACHE_BYTES / PAGE_BYTES) as usize / DIRECTIONS;

/// A tag that belongs to no page of any file.
const NONE: u64 = u64::MAX;

/// The costs of copies.
pub(crate) struct Copies {
    random_ps: u64,
    /// The cost of the next page in sequence, of a read and of a write.
    next_ps: [u64; 2],
    /// Pages, most recently used first.
    sets: Box<[[u64; DIRECTIONS]]>,
    /// The page copied last.
    last: u64,
    carry_ps: u64,
}

impl Copies {
    pub(crate) fn new(costs: &CostTable) -> Self {
        Self {
            random_ps: costs.caller_ps(CallerCost::RandomPage),
            next_ps: [costs.caller_ps(CallerCost::ReadPage), costs.caller_ps(CallerCost::WritePage)],
            sets: vec![[NONE; DIRECTIONS]; SETS].into_boxed_slice(),
            last: NONE,
            carry_ps: 0,
        }
    }

    /// Whether any copy costs anything.
    pub(crate) fn cost_something(&self) -> bool {
        self.random_ps > 0 || self.next_ps != [0; 2]
    }

    /// The time, in nanoseconds, by which a copy of this range of file number `file` exceeds a copy from the cache.
    pub(crate) fn copied_ns(&mut self, file: u32, offset: u64, len: u64, writes: bool) -> u64 {
        let mut ps = self.carry_ps;
        for page in offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES) {
            // Files have fewer than 2^40 pages and runs have fewer than 2^24 files; beyond that, pages only share tags.
            let tag = u64::from(file) << 40 ^ page;
            let in_order = tag == self.last.wrapping_add(1);
            if tag != self.last && !self.touch(tag) {
                ps += if in_order { self.next_ps[usize::from(writes)] } else { self.random_ps };
            }
            self.last = tag;
        }
        self.carry_ps = ps % 1000;
        ps / 1000
    }

    /// Puts the page into the cache; returns whether it was there before.
    fn touch(&mut self, tag: u64) -> bool {
        let set = &mut self.sets[(tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SETS];
        let found = set.iter().position(|other| *other == tag);
        let at = found.unwrap_or(DIRECTIONS - 1);
        set.copy_within(0..at, 1);
        set[0] = tag;
        found.is_some()
    }
}
