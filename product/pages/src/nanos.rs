//! Instants of a world's clocks.
//!
//! Owns: their types, lengths of time in nanoseconds.
//! Does not own: a clock.
//! Invariants: sums and differences saturate.

/// Nanoseconds on the world's monotonic clock, from an arbitrary start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nanoseconds of a millisecond.
    pub const MILLISECOND: u64 = 1_000_000;
    /// Nanoseconds in a microsecond.
    pub const MICROSECOND: u64 = 1_000;
    /// A hundredth of a second, which the kernel's knobs count in.
    pub const CENTISECOND: u64 = 10 * Self::MILLISECOND;
    /// Nanoseconds of a second.
    pub const SECOND: u64 = 1_000_000_000;
    /// The end of time.
    pub const NEVER: Self = Self(u64::MAX);

    /// This instant moved `ns` later; saturates at the end of time.
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to this instant, 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Nanoseconds since 1970-01-01 UTC on the world's wall clock. For file times, never for intervals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct WallNanos(pub i128);
