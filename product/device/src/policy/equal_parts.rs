//! The engine's own policy: each device has an equal part of the dirty limit.
//!
//! A writer whose pages do not fit in its device's part waits for that device alone, in order of asking. The flusher
//! writes while the dirty pages not in flight exceed the least of three thresholds: a fraction of the part, a number of
//! bytes, or the device's writes in a set time (`dirty_background_centisecs`). The last is 0 while the bandwidth is
//! unknown.
//!
//! Owns: the part, the thresholds. Does not own: the queue (`dirty`), the measurement of bandwidth.
//! Invariants: reads only its device, the knobs and the number of devices.

use afflux_pages::units::PageCount;

use super::view::View;
use crate::policy::{
    Admission, ChargeBounds, Completed, Cost, DevicePolicy, Figure, FigureInfo, LentMemory, LimitPages, Needs, Pace,
    PauseCause, Prices,
};

/// The name of this policy.
pub const EQUAL_PARTS_POLICY: &str = "equal-parts";

/// A policy that gives each device an equal part of the limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct EqualParts;

/// The policy's figures about a device.
pub const EQUAL_PARTS_FIGURES: [FigureInfo; 1] = [FigureInfo {
    name: "background_because",
    unit: "",
    doc: "Which threshold for background writeback is the lowest: `ratio`, `bytes`, or `time`.",
}];

/// The dirty pages not in flight above which the flusher writes: the least of the thresholds, and its name.
fn background(view: &View) -> (u64, &'static str) {
    let knobs = &view.knobs;
    let (pages, why) = match knobs.device_background_bytes {
        0 => (view.part_pages * knobs.device_background_ratio / 100, "ratio"),
        bytes => (PageCount::whole_in(bytes).0, "bytes"),
    };
    let in_time = || view.device().bandwidth.saturating_mul(knobs.background_centisecs) / 100;
    match knobs.background_centisecs {
        0 => (pages, why),
        _ if in_time() < pages => (in_time(), "time"),
        _ => (pages, why),
    }
}

fn background_pages(view: &View) -> u64 {
    background(view).0
}

impl DevicePolicy for EqualParts {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        EQUAL_PARTS_POLICY
    }

    fn needs(&self) -> Needs {
        Needs::NONE
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace::UNASKED
    }

    fn charge_bounds(&self, view: &View, (): &mut ()) -> ChargeBounds {
        ChargeBounds {
            cost_max: Cost(view.part_pages),
            prices: Prices::PAGES,
            cause: PauseCause::DevicePart,
            wake_above: Cost(background_pages(view)),
            ..ChargeBounds::UNLIMITED
        }
    }

    fn admit(&self, _: &View, _: LentMemory<'_, Self>) -> Admission {
        Admission::Enter
    }

    fn completed(&self, _: &View, _: &[Completed], (): &mut (), (): &mut ()) {}

    fn is_over_background(&self, view: &View, (): &mut (), (): &mut ()) -> bool {
        view.device().reclaimable > background_pages(view)
    }

    fn slice_bytes(&self, view: &View, (): &mut (), (): &mut ()) -> u64 {
        view.knobs.slice_bytes
    }

    fn limits(&self, view: &View, (): &mut (), (): &mut ()) -> LimitPages {
        LimitPages { dirty: view.part_pages, background: background_pages(view), bandwidth: None }
    }

    fn explain(&self, view: &View, (): &mut ()) -> Vec<Figure> {
        EQUAL_PARTS_FIGURES.iter().map(|info| Figure { info, value: background(view).1.into() }).collect()
    }
}
