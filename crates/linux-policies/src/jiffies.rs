//! The kernel's time and its powers of two.
//!
//! Owns: the tick rate of these kernels, the conversion to and from nanoseconds.
//! Does not own: clocks.
//! Invariants: 1,000 ticks a second, as on most of today's x86 builds; where a formula depends on the
//! rate it takes it as a parameter, so that vectors for other rates can be tried.

use engine::Nanos;

/// Ticks a second.
pub(crate) const HZ: u64 = 1000;

const NS_A_TICK: u64 = Nanos::SECOND / HZ;

/// Ticks since the clock's start.
pub(crate) fn jiffies(now: Nanos) -> u64 {
    now.0 / NS_A_TICK
}

/// Ticks as nanoseconds.
pub(crate) fn ns(jiffies: u64) -> u64 {
    jiffies.saturating_mul(NS_A_TICK)
}

/// The largest power of two that is not above `value`, as its exponent; 0 for 0.
pub(crate) fn log2(value: u64) -> u32 {
    value.checked_ilog2().unwrap_or(0)
}

/// The smallest power of two that is not below `value`.
pub(crate) fn pow2ceil(value: u64) -> u64 {
    value.max(1).next_power_of_two()
}
