//! Units, where two of them meet: bytes and pages, instants and lengths of time.
//!
//! Owns: the size of a page; counts of pages, where they meet bytes or a policy's cost; instants of a world's clocks.
//! Does not own: a clock; the units of a policy's prices, which only the policy understands (`policy`); those of knobs
//! that are times, which their rows know (`settings`). A count that is never combined with another unit is a plain
//! number.
//! Invariants: a conversion that rounds says in which direction. Sums and differences of instants saturate.

use std::ops::{Add, Div, Mul};

use afflux_frames::FRAME_BYTES;

/// Bytes in a page, as file offsets count.
pub const PAGE_BYTES: u64 = FRAME_BYTES as u64;

/// A number of pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct PageCount(pub u64);

impl PageCount {
    /// More pages than there are.
    pub const MAX: Self = Self(u64::MAX);

    /// Whole pages in `bytes`.
    pub const fn whole_in(bytes: u64) -> Self {
        Self(bytes / PAGE_BYTES)
    }

    /// Their bytes; saturates.
    pub const fn bytes(self) -> u64 {
        self.0.saturating_mul(PAGE_BYTES)
    }

    /// A percentage of them, rounded down.
    pub const fn percent(self, percent: u64) -> Self {
        Self(self.0 * percent / 100)
    }

    /// The sum; saturates.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; none if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for PageCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Mul<u64> for PageCount {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Div<u64> for PageCount {
    type Output = Self;

    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

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
