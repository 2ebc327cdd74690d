//! Knobs of the engine that act with another value than they have, under any policy.
//!
//! Owns: the comparison. Does not own: knobs that only the policy reads (its explanation), the values (`settings`).
//! Invariants: a knob is named only while its value differs from the one in force.

use afflux_device::policy::KnobInForce;
use afflux_device::settings::{Knob, KnobInfo, PageKnob, Settings, TableKnob};

use crate::devices::DeviceState;
use crate::reading::ahead::UNREAD_PART;

/// The knobs of a device, with this much memory for the cache.
pub(crate) fn of_engine(settings: &Settings, device: &DeviceState, memory_bytes: u64) -> Vec<KnobInForce> {
    let value = |knob: Knob| device.knob(settings, knob);
    let mut found = Vec::new();
    let mut differs = |info: &KnobInfo, value: Option<u64>, because: &str| {
        found.push(KnobInForce { name: info.name, value, unit: info.unit, because: because.to_owned() });
    };
    if value(Knob::DirtyBytes) > 0 {
        differs(Knob::DirtyRatio.info(), None, "dirty_bytes sets the limit");
    }
    if value(Knob::WritebackCentisecs) == 0 {
        differs(Knob::ExpireCentisecs.info(), None, "dirty_writeback_centisecs=0 turns writes by age off");
    }
    let unread_bytes = memory_bytes / UNREAD_PART;
    if value(Knob::ReadaheadBytes) > unread_bytes {
        let because = "unread pages hold a quarter of the cache at most";
        differs(Knob::ReadaheadBytes.info(), Some(unread_bytes), because);
    }
    if device.free_bytes_hint() == u64::MAX && value(Knob::ReserveBytes) > 0 {
        differs(Knob::ReserveBytes.info(), None, "the device counts no free space");
    }
    if value(Knob::BackgroundBytes) > 0 {
        differs(PageKnob::BackgroundRatio.info(), None, "dirty_background_bytes sets the threshold");
    }
    let depth = u64::from(device.limits().depth);
    if device.knob(settings, PageKnob::WriteDepth) > depth {
        differs(PageKnob::WriteDepth.info(), Some(depth), "the device takes no more requests at once");
    }
    found
}
