//! The kernel's ticks, and its powers of two.
//!
//! Owns: tick rates, the conversion to and from nanoseconds.
//! Does not own: clocks.
//! Invariants: a rate is one that kernels are built with. The default is 1,000 ticks a second, as in most of today's
//! x86 builds.

use afflux_engine::Nanos;

/// Ticks a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TickRate(u64);

impl TickRate {
    /// The rate unless a policy's name states another.
    pub(crate) const DEFAULT: Self = Self(1000);
    /// The rates that x86 kernels can be built with (`CONFIG_HZ`).
    pub(crate) const BUILT: [u64; 4] = [100, 250, 300, 1000];

    /// This rate, if kernels can be built with it.
    pub(crate) fn built(hz: u64) -> Option<Self> {
        Self::BUILT.contains(&hz).then_some(Self(hz))
    }

    pub(crate) const fn a_second(self) -> u64 {
        self.0
    }

    /// Ticks since the clock's start.
    pub(crate) fn at(self, now: Nanos) -> u64 {
        (u128::from(now.0) * u128::from(self.0) / u128::from(Nanos::SECOND)) as u64
    }

    /// Nanoseconds from an instant until a tick begins.
    pub(crate) fn until(self, now: Nanos, tick: u64) -> u64 {
        let begins = u128::from(tick) * u128::from(Nanos::SECOND);
        (begins.div_ceil(u128::from(self.0)).min(u128::from(u64::MAX)) as u64).saturating_sub(now.0)
    }

    /// When a timer fires that is set now for this many ticks. The farther a timer reaches, the coarser is its level of
    /// the wheel, and a level rounds up: 5 s of 250 ticks become up to 256 ms more (Linux 6.1, `calc_wheel_index`).
    pub(crate) fn fires(self, now: Nanos, ticks: u64) -> Nanos {
        let level = (0..8).find(|level| ticks < 63 << (3 * level)).unwrap_or(8);
        let tick = (((self.at(now) + ticks) >> (3 * level)) + 1) << (3 * level);
        Nanos(self.until(Nanos(0), tick))
    }

    /// Ticks as nanoseconds.
    pub(crate) fn ns(self, ticks: u64) -> u64 {
        ticks.saturating_mul(Nanos::SECOND) / self.0
    }
}

/// The largest power of two that is not above `value`, as its exponent; 0 for 0.
pub(crate) fn log2(value: u64) -> u32 {
    value.checked_ilog2().unwrap_or(0)
}

/// The smallest power of two that is not below `value`.
pub(crate) fn pow2ceil(value: u64) -> u64 {
    value.max(1).next_power_of_two()
}
