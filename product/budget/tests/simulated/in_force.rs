//! The limits in force for a device and their reasons, as the flush budget reports them; and the knowledge of a device
//! that is persisted until the next start.

use afflux_engine::policy::{FigureValue, Remembered};
use afflux_engine::settings::Knob;
use afflux_simulator::{Disk, DiskOptions, Memory, OWN_POLICY, Setup, SimMachine, World, WorldOptions};

use crate::fixture::{EngineFixture, MILLISECOND, SECOND};
use crate::streams::{FAST, MIB, SLOW, Writer, disk, lab};

#[test]
fn of_an_idle_disk_the_budget_is_the_one_asked_for_and_nothing_is_known() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    assert_eq!(lab.number(0, "budget_ns"), SECOND);
    assert_eq!(lab.number(0, "budget_in_force_ns"), SECOND);
    assert_eq!(lab.figure(0, "budget_because"), FigureValue::Word("asked for"));
    assert_eq!(lab.figure(0, "knowledge"), FigureValue::Word("cold"));
    assert_eq!((lab.number(0, "owed_ns"), lab.number(0, "payers")), (0, 1));
    assert_eq!(lab.figure(0, "write_age_ns"), FigureValue::Unknown);
    assert_eq!(lab.here.engine.status().policy, "afflux");
}

#[test]
fn beside_a_stream_what_is_owed_and_known_is_told() {
    let lab = lab(1 << 30, &[disk(SLOW)]);
    let _ = Writer::STREAM.begins(&lab);
    lab.passes(10 * SECOND);
    assert_eq!(lab.figure(0, "budget_because"), FigureValue::Word("asked for"));
    assert_eq!(lab.figure(0, "knowledge"), FigureValue::Word("known"));
    let (owed, dirty) = (lab.number(0, "owed_ns"), lab.here.dirty_bytes());
    let right = dirty * SECOND / SLOW;
    assert!(owed.abs_diff(right) < right / 5, "{owed} ns are owed for {dirty} bytes");
    let (mib, right) = (lab.number(0, "write_mib_ns"), MIB * SECOND / SLOW);
    assert!(mib.abs_diff(right) < right / 10, "{mib} ns");
    assert!(lab.number(0, "write_age_ns") < SECOND / 2);
    lab.here.engine.set_device_knob(lab.here.devices[0], Knob::BackgroundCentisecs, 0).unwrap();
    let before = lab.number(0, "write_age_ns");
    lab.here.disks[0].hang();
    lab.passes(3 * SECOND);
    assert!(lab.number(0, "write_age_ns") >= before + 29 * SECOND / 10, "it gets older while nothing completes");
}

#[test]
fn a_budget_that_many_writers_stretch_says_so() {
    let seeks = DiskOptions { latency_ns: 8 * MILLISECOND, depth: 1, ..disk(SLOW) };
    let lab = lab(1 << 30, &[seeks]);
    let _writers: Vec<_> = (0..100).map(|_| Writer::STREAM.begins(&lab)).collect();
    lab.passes(20 * SECOND);
    assert_eq!(lab.figure(0, "budget_because"), FigureValue::Word("many writers"));
    let (in_force, run) = (lab.number(0, "budget_in_force_ns"), lab.number(0, "write_run_ns"));
    let payers = lab.number(0, "payers_on_average");
    assert!(payers > 50, "{payers} payers");
    let stretched = (8 * run * payers).clamp(SECOND, (8 * SECOND).max(3 * run * payers));
    assert_eq!(in_force, stretched.min(5 * SECOND), "and five times what was asked for at most");
}

#[test]
fn several_disks_in_memory_for_all_of_them_have_their_budgets_each() {
    let lab = lab(512 << 20, &[disk(2 * SLOW), disk(2 * SLOW), disk(2 * SLOW)]);
    for number in 0..3 {
        let _ = (0..4).map(|_| Writer { disk: number, ..Writer::STREAM }.begins(&lab)).collect::<Vec<_>>();
    }
    lab.passes(10 * SECOND);
    for number in 0..3 {
        assert_eq!(lab.figure(number, "budget_because"), FigureValue::Word("asked for"), "{}", lab.figures(number));
        assert_eq!(lab.number(number, "counted_ns"), lab.number(number, "owed_ns"));
    }
}

#[test]
fn where_memory_is_shorter_than_time_the_guard_is_the_reason() {
    let lab = lab(32 << 20, &[disk(FAST)]);
    let _ = Writer::STREAM.begins(&lab);
    lab.passes(SECOND);
    assert_eq!(lab.figure(0, "budget_because"), FigureValue::Word("memory guard"));
    assert!(lab.number(0, "counted_ns") > lab.number(0, "owed_ns"));
    assert_eq!(lab.number(0, "budget_in_force_ns"), SECOND);
}

/// The knowledge of a disk of this speed after a stream to it.
fn learned(bytes_per_second: u64) -> Remembered {
    let lab = lab(1 << 30, &[disk(bytes_per_second)]);
    assert!(lab.here.engine.remembered(lab.here.devices[0]).is_empty(), "nothing is known yet");
    let _ = Writer::STREAM.begins(&lab);
    lab.passes(5 * SECOND);
    lab.here.engine.remembered(lab.here.devices[0])
}

/// A lab with a disk for which this knowledge was persisted.
fn known(bytes_per_second: u64, remembered: &Remembered) -> EngineFixture {
    let world = World::new(WorldOptions { steps_max: u64::MAX, ..WorldOptions::seed(3) });
    let mut machine = SimMachine::new(&world, Memory::Stamped(1 << 30), Setup::of(OWN_POLICY).unwrap()).unwrap();
    machine.add_known("known", Disk::new(&world, 0, disk(bytes_per_second)), remembered);
    EngineFixture::of(world, machine)
}

#[test]
fn a_disk_that_was_known_before_is_not_cold() {
    let first_burst = |remembered: &Remembered| {
        let lab = known(SLOW, remembered);
        let known = lab.figure(0, "knowledge") == FigureValue::Word("known");
        let _ = Writer::STREAM.begins(&lab);
        // For an unknown disk 4 MiB would be the whole budget. Here a quarter of the known disk's budget enters at
        // once.
        lab.passes(3 * MILLISECOND);
        (known, lab.here.dirty_bytes())
    };
    let (is_known, warm) = first_burst(&learned(SLOW));
    assert!(is_known && (SLOW / 4..SLOW).contains(&warm), "{warm} bytes");
    let (is_known, cold) = first_burst(&Remembered::new());
    assert!(!is_known && cold < 4 * MIB, "{cold} bytes");
}

#[test]
fn prices_of_a_disk_that_has_changed_are_corrected_in_a_second_and_what_is_owed_is_bounded() {
    for (before, now) in [(SLOW * 10, SLOW), (SLOW, SLOW * 10)] {
        let lab = known(now, &learned(before));
        let _ = Writer::STREAM.begins(&lab);
        lab.passes(SECOND);
        let (mib, right) = (lab.number(0, "write_mib_ns"), MIB * SECOND / now);
        assert!(mib.abs_diff(right) <= right / 4, "{before} to {now}: {mib} ns, and {right} is right");
        lab.passes(12 * SECOND);
        let most = lab.most_dirty(SECOND);
        assert!(most <= now * 5 / 4, "{most} bytes are owed");
    }
}

#[test]
fn what_makes_no_sense_is_passed_over() {
    let mut nonsense = learned(SLOW);
    *nonsense.values_mut().next().unwrap() = 0;
    let lab = known(SLOW, &nonsense);
    assert_eq!(lab.figure(0, "knowledge"), FigureValue::Word("cold"));
}
