//! The knobs of the kernel, and the dirty limits of all devices.
//!
//! Owns: the knobs with their initial values, the formulas (`get_dirty_limits` without its device).
//! Does not own: the shares of devices (`balance`).
//! Invariants: background is below the limit whatever the knobs say, since the kernel silently takes half of the limit
//! instead.

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Ticks a second: `CONFIG_HZ`.
pub(crate) const HZ: u64 = 1000;
/// Nanoseconds of a tick.
pub(crate) const JIFFY_NS: u64 = 1_000_000_000 / HZ;

/// The tick of the boot: not 0, so that an expiry lies before it.
pub(crate) const INITIAL_JIFFIES: u64 = 1 << 32;

/// The knobs under `/proc/sys/vm`, and a device's ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// `dirty_ratio`, percent.
    pub dirty_ratio: u64,
    /// `dirty_background_ratio`, percent.
    pub background_ratio: u64,
    /// `dirty_background_bytes`; 0 for the ratio.
    pub background_bytes: u64,
    /// `dirty_expire_centisecs`.
    pub expire_centisecs: u64,
    /// `dirty_writeback_centisecs`; 0 for never.
    pub writeback_centisecs: u64,
    /// `max_ratio` of each device, percent.
    pub max_ratio: u64,
}

impl Default for Sysctl {
    fn default() -> Self {
        Self {
            dirty_ratio: 20,
            background_ratio: 10,
            background_bytes: 0,
            expire_centisecs: 3000,
            writeback_centisecs: 500,
            max_ratio: 100,
        }
    }
}

impl Sysctl {
    /// Ticks of `dirty_expire_centisecs`.
    pub(crate) fn expire_jiffies(&self) -> u64 {
        self.expire_centisecs * HZ / 100
    }

    /// Ticks of `dirty_writeback_centisecs`.
    pub(crate) fn writeback_jiffies(&self) -> u64 {
        self.writeback_centisecs * HZ / 100
    }
}

/// Limits of all devices together, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// No writer may pass it.
    pub(crate) dirty: u64,
    /// Background writeback starts above it.
    pub(crate) background: u64,
}

impl Limits {
    /// Up to this number of dirty pages no writer is throttled.
    pub(crate) fn midpoint(self) -> u64 {
        (self.dirty + self.background) / 2
    }
}

/// The limits for so much dirtyable memory. The ratio is at least 5; products come before quotients.
pub(crate) fn limits(dirtyable: u64, sysctl: &Sysctl) -> Limits {
    let dirty = sysctl.dirty_ratio.max(5) * dirtyable / 100;
    let background = match sysctl.background_bytes {
        0 => sysctl.background_ratio * dirtyable / 100,
        bytes => bytes.div_ceil(PAGE_BYTES),
    };
    Limits { dirty, background: if background >= dirty { dirty / 2 } else { background } }
}

#[cfg(test)]
mod tests;
