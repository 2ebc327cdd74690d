//! The allocator's events, counted exactly.
//!
//! Owns: the counters. Does not own: the moments of counting.
//! Invariants: each counter changes under the lock of the counted thing, so it is exact and costs
//! no atomic.

/// Counts of a per-CPU list.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ListCounters {
    /// Elements looked at to find a frame of the wanted class.
    pub elements_searched: u64,
    /// List heads examined in drains, empty or not.
    pub lists_examined: u64,
    /// Checks whether a list that is being drained still has frames.
    pub inner_checks: u64,
    /// Times that frames were brought in from the buddy lists.
    pub refills: u64,
    /// Times that frames were given back to the buddy lists.
    pub drains: u64,
}

/// Counts of a zone's buddy lists.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ZoneCounters {
    /// Times that the zone's lock was taken.
    pub lock_acquisitions: u64,
    /// Blocks cut in two.
    pub splits: u64,
    /// Pairs of buddies merged into one.
    pub merges: u64,
    /// Times that another class gave a block.
    pub fallbacks: u64,
    /// Times that the other class also gave its pageblock.
    pub steals: u64,
}

/// Both, summed over the CPUs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Of all per-CPU lists.
    pub lists: ListCounters,
    /// Of the zone.
    pub zone: ZoneCounters,
}

impl ListCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.elements_searched += other.elements_searched;
        self.lists_examined += other.lists_examined;
        self.inner_checks += other.inner_checks;
        self.refills += other.refills;
        self.drains += other.drains;
    }
}
