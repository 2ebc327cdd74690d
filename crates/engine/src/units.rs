//! Units, where two of them meet.
//!
//! Owns: the size of a page, conversions between bytes and pages, centiseconds and milliseconds as nanoseconds.
//! Does not own: the units of a policy's prices, which nobody but the policy understands (`policy`).
//! Invariants: a conversion that rounds says which way.

use frames::FRAME_BYTES;

use crate::platform::Nanos;

/// Bytes in a page, as file offsets count.
pub(crate) const PAGE_BYTES: u64 = FRAME_BYTES as u64;

/// Whole pages in so many bytes.
pub(crate) const fn pages_in(bytes: u64) -> u64 {
    bytes / PAGE_BYTES
}

/// Bytes of so many pages; stops at the largest number.
pub(crate) const fn bytes_of(pages: u64) -> u64 {
    pages.saturating_mul(PAGE_BYTES)
}

/// Centiseconds, as the kernel's knobs have them, in nanoseconds.
pub(crate) const fn centisecs_ns(centisecs: u64) -> u64 {
    centisecs * Nanos::CENTISECOND
}

/// Milliseconds in nanoseconds.
pub(crate) const fn millis_ns(millis: u64) -> u64 {
    millis * Nanos::MILLISECOND
}
