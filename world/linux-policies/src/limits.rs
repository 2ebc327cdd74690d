//! Dirtyable memory and the dirty limits, by the kernels' formulas.
//!
//! Owns: the formulas of two eras. Does not own: the shares of devices.
//! Invariants: background is below the limit whatever the knobs say, since the kernel silently takes half of the limit
//! instead. (Here such knobs are refused before, with both values.)

use afflux_engine::policy::{KnobValues, View};

pub(crate) const PAGE_BYTES: u64 = 4096;

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
    pub(crate) fn freerun(self) -> u64 {
        (self.dirty + self.background) / 2
    }

    fn ordered(self) -> Self {
        let background = if self.background >= self.dirty { self.dirty / 2 } else { self.background };
        Self { background, ..self }
    }
}

/// Linux 3.6 and 6.1: free pages beyond the reserve, and file pages, plus 1.
pub(crate) fn dirtyable_modern(view: &View) -> u64 {
    view.shared.free.saturating_sub(view.shared.reserve) + view.shared.cached + 1
}

/// Linux 3.6, `global_dirty_limits`: products before quotients.
pub(crate) fn limits_2012(dirtyable: u64, knobs: &KnobValues) -> Limits {
    let pages = |bytes: u64, ratio: u64| if bytes > 0 { bytes.div_ceil(PAGE_BYTES) } else { ratio * dirtyable / 100 };
    let dirty = pages(knobs.dirty_bytes, knobs.dirty_ratio);
    let background = pages(knobs.background_bytes, knobs.background_ratio);
    Limits { dirty, background }.ordered()
}

/// Linux 6.1, `domain_dirty_limits`: the ratio is rounded to 1/4096 first.
pub(crate) fn limits_6_1(dirtyable: u64, knobs: &KnobValues) -> Limits {
    let by_ratio = |ratio: u64| (ratio * PAGE_BYTES / 100) * dirtyable / PAGE_BYTES;
    let pages = |bytes: u64, ratio: u64| if bytes > 0 { bytes.div_ceil(PAGE_BYTES) } else { by_ratio(ratio) };
    let dirty = pages(knobs.dirty_bytes, knobs.dirty_ratio).min(u64::from(u32::MAX));
    let background = pages(knobs.background_bytes, knobs.background_ratio);
    Limits { dirty, background }.ordered()
}

#[cfg(test)]
mod tests;
