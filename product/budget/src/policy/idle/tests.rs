use afflux_device::policy::{DeviceCounts, KnobValues, PolicyKnobs};

use super::*;
use crate::{BudgetKnob, KNOBS};

const SECOND: u64 = 1000 * MILLISECOND;

/// A file to be looked at at an instant.
struct Dirty(Option<u64>);

impl DirtyFiles for Dirty {
    fn has_any(&self) -> bool {
        true
    }

    fn dirty_since(&self, _: bool) -> Option<Nanos> {
        Some(Nanos(0))
    }

    fn has_round(&self) -> bool {
        false
    }

    fn look_at(&self) -> Option<Nanos> {
        self.0.map(|ms| Nanos(ms * MILLISECOND))
    }
}

fn view(ms: u64, device: DeviceCounts) -> View {
    let mut view = View::new(Nanos(ms * MILLISECOND), device);
    view.knobs = KnobValues { own: PolicyKnobs::defaults(&KNOBS), ..KnobValues::default() };
    view
}

fn next_at(ms: u64, look_at: Option<u64>, device: DeviceCounts) -> Next {
    let view = view(ms, device);
    next(&view, &Dirty(look_at), &Knobs::of(&view.knobs))
}

#[test]
fn a_device_that_nobody_waits_for_is_idle() {
    let quiet = DeviceCounts::default();
    let wait = |ms| Next::WaitUntil(Nanos(ms * MILLISECOND));
    let idle = Next::FlushSlice(FlushSlice::Idle { now: Nanos(400 * MILLISECOND) });
    let ended = |ms: u64| DeviceCounts { waited_for_at: Some(Nanos(ms * MILLISECOND)), ..quiet };
    let table = [
        (None, quiet, Next::WaitUntil(Nanos::NEVER)),
        (Some(500), quiet, wait(500)),
        (Some(400), quiet, idle),
        (Some(100), DeviceCounts { writes_in_flight: 3, ..quiet }, idle),
        (Some(100), DeviceCounts { reads_in_flight: 1, ..quiet }, wait(420)),
        (Some(100), DeviceCounts { calls_in_flight: 1, ..quiet }, wait(420)),
        (Some(100), DeviceCounts { payers_waiting: 1, ..quiet }, wait(600)),
        (Some(100), ended(390), wait(410)),
        (Some(100), ended(380), idle),
    ];
    for (look_at, device, expected) in table {
        assert_eq!(next_at(400, look_at, device), expected, "{look_at:?} {device:?}");
    }
}

#[test]
fn without_the_knob_or_beside_a_background_threshold_of_the_user_nothing_is_written_behind() {
    let off = |knobs: KnobValues| {
        let mut view = view(400, DeviceCounts::default());
        view.knobs = knobs;
        next(&view, &Dirty(Some(1)), &Knobs::of(&view.knobs)) == Next::WaitUntil(Nanos::NEVER)
    };
    let own = PolicyKnobs::defaults(&KNOBS);
    let on = KnobValues { own, ..KnobValues::default() };
    assert!(!off(on));
    assert!(off(KnobValues { own: own.with(BudgetKnob::IdleWriteback, 0), ..on }));
    assert!(off(KnobValues { background_centisecs: 10, ..on }));
    assert!(off(KnobValues { device_background_bytes: 1 << 20, ..on }));
    assert!(off(KnobValues { expire_ns: u64::MAX, ..on }), "dirty_writeback_centisecs is 0");
}

/// The answer for a file with a q of `before_ms`.
fn after(before_ms: u64, fresh: u64, again: u64, over_ms: u64) -> Option<(u64, bool)> {
    let (before, over_ns) = (IdleWriteRule { ns: before_ms * MILLISECOND, hot: false }, over_ms * MILLISECOND);
    let answer = idle_write_rule(&view(0, DeviceCounts::default()), before, &Rewrites { fresh, again, over_ns });
    answer.map(|IdleWriteRule { ns, hot }| (ns / MILLISECOND, hot))
}

#[test]
fn rewriting_doubles_q_and_writing_halves_it() {
    let table = [
        ((0, 100, 0, 0), Some((200, false)), "a new file"),
        ((200, 100, 13, 1000), Some((400, false)), "more than an eighth"),
        ((200, 100, 12, 1000), Some((200, false)), "not more"),
        ((400, 100, 3, 1000), Some((200, false)), "less than a 32nd"),
        ((400, 100, 4, 1000), Some((400, false)), "not less"),
        ((200, 100, 0, 1000), Some((200, false)), "not under 200 ms"),
        ((20_000, 0, 1, 1000), Some((30_000, true)), "nor over the expiry"),
        ((800, 0, 1, 1000), Some((1600, true)), "hot from a second on"),
        ((1600, 9, 0, 1000), Some((800, false)), "and no more below"),
        ((200, 0, 15, 999), None, "too early"),
        ((200, 0, 16, 1), Some((400, false)), "so many are enough"),
        ((800, 900, 0, 999), None, "too early"),
        ((800, 0, 0, 6399), None, "nothing happened"),
        ((800, 0, 0, 6400), Some((400, false)), "for long"),
    ];
    for ((before, fresh, again, over), expected, what) in table {
        assert_eq!(after(before, fresh, again, over), expected, "{before} {fresh} {again} {over}: {what}");
    }
}

#[test]
fn a_short_expiry_bounds_q() {
    let mut view = view(0, DeviceCounts::default());
    view.knobs.expire_ns = SECOND;
    let again = Rewrites { fresh: 0, again: 100, over_ns: SECOND };
    let before = IdleWriteRule { ns: 800 * MILLISECOND, hot: false };
    assert_eq!(idle_write_rule(&view, before, &again), Some(IdleWriteRule { ns: SECOND, hot: true }));
}
