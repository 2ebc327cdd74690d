use afflux_device::policy::{DeviceCounts, DevicePolicy, KnobValues, PolicyKnobs};

use super::*;
use crate::{Budget, KNOBS};

const MIB: u64 = 1 << 20;
/// 100 MiB/s.
const MIB_NS: u64 = 10 * MILLISECOND;

/// A device that has written for long at about 100 MiB/s, in a cache whose memory guard leaves it so many pages.
fn told(knobs: KnobValues, guard_pages: u64) -> (Vec<KnobInForce>, u64) {
    let mut view = View::new(Nanos(0), DeviceCounts::default());
    view.knobs = KnobValues { own: PolicyKnobs::defaults(&KNOBS).with(BudgetKnob::PortionBytes, 0), ..knobs };
    (view.guard_pages, view.request_bytes_max, view.request_bytes) = (guard_pages, 512 << 10, 512 << 10);
    let mut device = Budget.recall(&known());
    let threshold = Budget.limits(&view, &mut device, &mut ()).background * PAGE_BYTES;
    (Budget.knobs_in_force(&view, &mut device), threshold)
}

fn known() -> afflux_device::policy::Remembered {
    crate::RememberedPrices { write_run_ns: 100_000, write_mib_ns: MIB_NS, read_run_ns: 100_000, read_mib_ns: MIB_NS }
        .named()
}

fn one<'a>(found: &'a [KnobInForce], name: &str) -> Option<&'a KnobInForce> {
    found.iter().find(|knob| knob.name == name)
}

#[test]
fn a_background_threshold_in_bytes_is_the_flushers_line_up_to_what_writers_dirty_without_a_pause() {
    let set = |bytes| told(KnobValues { device_background_bytes: bytes, ..KnobValues::default() }, 1 << 20);
    for mib in [1, 30, 70] {
        let (found, threshold) = set(mib * MIB);
        assert_eq!(one(&found, "dirty_background_bytes"), None, "{mib} MiB");
        assert!(
            threshold.abs_diff(mib * MIB) < MIB / 10,
            "{mib} MiB were asked for, and {threshold} bytes are in force"
        );
    }
    let (found, threshold) = set(500 * MIB);
    let told = one(&found, "dirty_background_bytes").unwrap();
    assert_eq!(told.value, Some(threshold));
    assert!(threshold.abs_diff(75 * MIB) < MIB && told.because.contains("budget_ms"), "{told}");
    assert!(one(&found, "idle_writeback").unwrap().value.is_none());
}

#[test]
fn a_background_threshold_in_time_says_what_holds_it_down() {
    let set = |knobs, guard| told(knobs, guard).0;
    let time = |centisecs| KnobValues { background_centisecs: centisecs, ..KnobValues::default() };
    assert_eq!(one(&set(time(50), 1 << 20), "dirty_background_centisecs"), None);
    let by_budget = set(time(300), 1 << 20);
    let told = one(&by_budget, "dirty_background_centisecs").unwrap();
    assert!(told.value == Some(75) && told.because.contains("budget_ms"), "{told}");
    let by_bytes = set(KnobValues { device_background_bytes: 2 * MIB, ..time(50) }, 1 << 20);
    let told = one(&by_bytes, "dirty_background_centisecs").unwrap();
    assert!(told.value == Some(2) && told.because.contains("other"), "{told}");
    let by_memory = set(time(50), 2560);
    let told = one(&by_memory, "dirty_background_centisecs").unwrap();
    assert!(told.value == Some(5) && told.because.contains("memory"), "{told}");
    assert!(one(&by_memory, "budget_ms").is_some_and(|told| told.value == Some(100)));
}
