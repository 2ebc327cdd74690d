use afflux_engine::Nanos;
use afflux_engine::policy::{DeviceCounts, KnobValues, PayerCounts, PolicyKnobs, SharedCounts};

use super::*;
use crate::knobs::KNOBS;

const MS: u64 = Nanos::MILLISECOND;

/// A machine whose limits are exactly 200,000 and 100,000 pages.
fn view(ms: u64, dirty: u64, device: DeviceCounts, dirtied: u64) -> View {
    let mut view = View::new(Nanos(ms * MS), device);
    view.shared = SharedCounts { cached: 1_000_000, dirty, ..SharedCounts::default() };
    view.knobs = KnobValues {
        dirty_bytes: 200_000 * 4096,
        background_bytes: 100_000 * 4096,
        own: PolicyKnobs::defaults(&KNOBS),
        ..KnobValues::default()
    };
    view.payer = PayerCounts { dirtied, ..PayerCounts::default() };
    view
}

struct DeviceState {
    law: Control,
    task: Task,
    device: Device,
    shared: Shared,
    pace: Pace,
}

impl DeviceState {
    fn new(era: Era) -> Self {
        let learns = if era == Era::V6_1 { Learns::Slices } else { Learns::Completions };
        let law = Control { era, learns, ticks: TickRate::DEFAULT };
        let pace = DevicePolicy::start(&law, 1_000_000, 1);
        Self { law, task: Task::default(), device: Device::default(), shared: Shared::default(), pace }
    }

    fn decide(&mut self, view: &View) -> Admission {
        self.task.dirtied = view.payer.dirtied;
        self.pace.wakes_flusher = false;
        let Self { law, task, device, shared, pace } = self;
        law.admit(view, LentMemory { payer: task, device, shared, pace })
    }

    /// A device that has written everything so far.
    fn owning(era: Era) -> Self {
        let mut state = Self::new(era);
        state.shared.completions.add(&mut state.device.completions, 1 << 40, flexible::WHOLE, Nanos(0));
        state
    }
}

#[test]
fn up_to_the_ceiling_nobody_waits() {
    for era in [Era::V6_1, Era::V3_6] {
        for (dirty, pages) in [(0, 256), (100_000, 256)] {
            let mut state = DeviceState::new(era);
            let view = view(1000, dirty, DeviceCounts::default(), 32);
            assert_eq!(state.decide(&view), Admission::Enter);
            assert_eq!(state.task, Task { paused_when: 1000, allowance: pages, ..Task::default() });
        }
    }
}

#[test]
fn background_writeback_is_asked_for_above_its_threshold() {
    for (dirty, flushing, asked) in [(100_000, false, false), (100_001, false, true), (100_001, true, false)] {
        let mut state = DeviceState::new(Era::V6_1);
        state.decide(&view(1000, dirty, DeviceCounts { flushing, ..DeviceCounts::default() }, 32));
        assert_eq!(state.pace.wakes_flusher, asked, "{dirty} {flushing}");
    }
}

#[test]
fn a_throttled_writer_sleeps_once_for_its_pages() {
    // At the setpoint the factor is 1023 and the rate 25,600: 256 pages are 10 ms, and the timer is a tick late.
    let mut state = DeviceState::owning(Era::V6_1);
    let device = DeviceCounts { reclaimable: 175_000, ..DeviceCounts::default() };
    let decision = state.decide(&view(100, 175_000, device, 256));
    let pause = Pause { ns: 11 * MS, cause: PauseCause::Rate };
    assert_eq!(decision, Admission::EnterAfter(pause));
    assert_eq!((state.task.paused_when, state.task.dirtied), (110, 0));
    // The writer came back 4 ms after the pause. They count as sleep, and 6 ms are left, the shortest pause.
    let decision = state.decide(&view(114, 175_000, device, 256));
    assert_eq!(decision, Admission::EnterAfter(Pause { ns: 7 * MS, ..pause }));
    // After 7 ms, 3 are left. They are not worth a sleep, and are carried on as debt.
    let decision = state.decide(&view(127, 175_000, device, 256));
    assert_eq!((decision, state.task.paused_when), (Admission::Enter, 130));
}

/// 270 pages at 25,575 a second (the factor at the setpoint is 1023) take 10.56 ms. This is cut to 10 ms with ticks of
/// 1 ms, and to 8 with ticks of 4 ms. So with 250 ticks a second a writer gets more done. Since 4.8 a sleep ends at the
/// begin of the tick after the last.
#[test]
fn pauses_are_whole_ticks() {
    let table = [
        (Era::V6_1, 1000, 100_000, 11_000, 110),
        (Era::V6_1, 1000, 100_400, 10_600, 110),
        (Era::V6_1, 250, 100_000, 12_000, 27),
        (Era::V6_1, 250, 103_000, 9000, 27),
        (Era::V6_1, 100, 100_000, 20_000, 11),
        (Era::V3_6, 1000, 100_400, 10_000, 110),
    ];
    for (era, hz, at_us, pause_us, ends) in table {
        let mut state = DeviceState::owning(era);
        state.law.ticks = TickRate::built(hz).unwrap();
        let device = DeviceCounts { reclaimable: 175_000, ..DeviceCounts::default() };
        let mut view = view(0, 175_000, device, 270);
        view.now = Nanos(at_us * 1000);
        let Admission::EnterAfter(pause) = state.decide(&view) else { panic!("it waits") };
        assert_eq!((pause.ns, state.task.paused_when), (pause_us * 1000, ends), "{era:?}, {hz} ticks a second");
    }
}

/// 200 ms are 50 ticks of 4 ms. `time_is_before_jiffies` is strict, so the trace of a 6.1 with such ticks has 204 ms.
#[test]
fn estimates_are_updated_a_tick_after_200_ms_whatever_the_ticks() {
    for hz in TickRate::BUILT {
        let mut state = DeviceState::owning(Era::V6_1);
        state.law.ticks = TickRate::built(hz).unwrap();
        for (ticks, updated) in [(hz / 5, false), (hz / 5 + 1, true)] {
            let mut view = view(0, 0, DeviceCounts { written: 1280, writeback: 32, ..DeviceCounts::default() }, 0);
            view.now = Nanos(state.law.ticks.until(Nanos(0), ticks));
            let DeviceState { law, device, shared, .. } = &mut state;
            law.slice_bytes(&view, device, shared);
            assert_eq!(device.bandwidth != Bandwidth::default(), updated, "{hz} ticks a second, {ticks}");
        }
    }
}

/// If completed writes updated the estimates, writers would mostly come too early, and rate limits would hardly move.
#[test]
fn in_6_1_a_completed_write_leaves_the_update_to_the_next_writer() {
    let mut state = DeviceState::owning(Era::V6_1);
    let device = DeviceCounts {
        reclaimable: 180_000,
        writeback: 2048,
        dirtied: 15_360,
        written: 1280,
        ..DeviceCounts::default()
    };
    let now = view(300, 182_048, device, 32);
    let DeviceState { law, device, shared, .. } = &mut state;
    law.wrote(&now, 32, device, shared);
    assert_eq!((device.updated, device.rate), (0, RateLimit::default()));
    state.decide(&now);
    // 51,200 pages a second were dirtied, twice the bandwidth. The factor is below 1, so less than half of 25,601 is
    // balanced.
    assert_eq!(state.device.updated, 300);
    assert!((12_000..12_800).contains(&state.device.rate.balanced), "{:?}", state.device.rate);
}

/// The last write ends at 300 ms, so the update is due at 500: (1,280 × 1000 + 25,600 × (4096 − 500))/4096 = 22,787.
/// The time from there to 5 s is idle and counts for nothing.
#[test]
fn in_6_1_the_last_write_in_flight_counts_200_ms_later() {
    let mut state = DeviceState::owning(Era::V6_1);
    let DeviceState { law, device, shared, .. } = &mut state;
    law.wrote(&written(300, 1280), 1280, device, shared);
    assert_eq!(device.bandwidth, Bandwidth::default());
    law.slice_bytes(&written(5000, 1280), device, shared);
    assert_eq!(device.bandwidth, Bandwidth { now: 22_787, average: 25_600 });
    assert_eq!((device.updated, device.written), (5000, 1280));
}

#[test]
fn debt_is_bounded_by_the_longest_pause() {
    let mut state = DeviceState::owning(Era::V6_1);
    let device = DeviceCounts { reclaimable: 175_000, ..DeviceCounts::default() };
    let Admission::EnterAfter(pause) = state.decide(&view(100, 175_000, device, 25_600)) else { panic!("it waits") };
    assert_eq!(pause.ns, 201 * MS);
    assert_eq!(state.task.paused_when, 100 + 200 + 200, "of the second one longest pause is carried on");
}

#[test]
fn at_the_hard_limit_a_writer_waits_until_it_falls() {
    let mut state = DeviceState::owning(Era::V6_1);
    let device = DeviceCounts { reclaimable: 200_000, ..DeviceCounts::default() };
    let Admission::Pause(pause) = state.decide(&view(100, 200_000, device, 32)) else { panic!("it waits") };
    assert_eq!((pause.cause, pause.ns), (PauseCause::GlobalLimit, 201 * MS));
    // So few pages of the device may be an error of the counters: one sleep is enough.
    let device = DeviceCounts { reclaimable: 8, ..DeviceCounts::default() };
    assert!(matches!(state.decide(&view(400, 200_000, device, 32)), Admission::EnterAfter(_)));
}

/// `pages_dirtied` is the call's own and stays through its loop: 256 pages at 25,575 a second are 10 ms.
#[test]
fn a_writer_that_slept_at_the_hard_limit_still_pays_for_its_pages() {
    let mut state = DeviceState::owning(Era::V6_1);
    let full = DeviceCounts { reclaimable: 200_000, ..DeviceCounts::default() };
    let Admission::Pause(pause) = state.decide(&view(100, 200_000, full, 256)) else { panic!("it waits") };
    assert_eq!((pause.cause, pause.ns), (PauseCause::GlobalLimit, 201 * MS));
    let half = DeviceCounts { reclaimable: 175_000, ..DeviceCounts::default() };
    let Admission::EnterAfter(pause) = state.decide(&view(301, 175_000, half, 0)) else { panic!("it pays") };
    assert_eq!((pause.cause, pause.ns), (PauseCause::Rate, 10 * MS), "a tick of them has passed since its pause");
    assert_eq!(state.decide(&view(320, 175_000, half, 0)), Admission::Enter, "it has paid");
    // Below the ceiling nobody pays.
    state.decide(&view(400, 200_000, full, 256));
    state.decide(&view(700, 0, DeviceCounts::default(), 0));
    assert_eq!(state.task.unpaid, None);
}

#[test]
fn a_device_is_over_with_more_than_its_share_and_all_over_the_limit() {
    for (dirty, reclaimable, exceeded) in
        [(200_001, 200_000, true), (200_001, 10_000, false), (200_000, 150_000, false)]
    {
        let mut state = DeviceState::new(Era::V6_1);
        state.shared.completions.add(&mut state.device.completions, 1000, flexible::WHOLE, Nanos(0));
        let mut other = flexible::Local::default();
        state.shared.completions.add(&mut other, 999, flexible::WHOLE, Nanos(0));
        state.decide(&view(100, dirty, DeviceCounts { reclaimable, ..DeviceCounts::default() }, 32));
        assert_eq!(state.device.dirty_exceeded, exceeded, "{dirty} {reclaimable}");
    }
}

#[test]
fn shares_by_table() {
    let limits = Limits { dirty: 200_000, background: 100_000 };
    let table = [
        ((3, 4), 0, 0, 100, 150_000),
        ((3, 4), 5, 5, 100, 152_500),
        ((0, 1), 5, 5, 100, 10_000),
        ((9, 10), 0, 0, 1, 2000),
    ];
    for ((numerator, denominator), min_ratio, min_ratio_sum, max_ratio, share) in table {
        let mut state = DeviceState::new(Era::V6_1);
        let mut other = flexible::Local::default();
        // The global count begins at 1.
        let others = denominator - numerator;
        if others > 1 || numerator > 0 {
            state.shared.completions.add(&mut other, others * 100_000 - 1, flexible::WHOLE, Nanos(0));
            state.shared.completions.add(&mut state.device.completions, numerator * 100_000, flexible::WHOLE, Nanos(0));
        }
        let mut view = view(0, 0, DeviceCounts::default(), 0);
        let own = view.knobs.own.with(KernelKnob::MinRatio, min_ratio).with(KernelKnob::MaxRatio, max_ratio);
        let own_sums = PolicyKnobs::default().with(KernelKnob::MinRatio, min_ratio_sum);
        view.knobs = KnobValues { own, own_sums, ..view.knobs };
        let DeviceState { law, device, shared, .. } = &mut state;
        assert_eq!(law.share(&view, 200_000, limits, device, shared), share, "{numerator}/{denominator}");
    }
}

#[test]
fn minimum_and_maximum_in_bytes_are_6_1s() {
    let limits = Limits { dirty: 200_000, background: 100_000 };
    let mut view = view(0, 0, DeviceCounts::default(), 0);
    view.knobs.own = view.knobs.own.with(KernelKnob::MinBytes, 5000 * 4096).with(KernelKnob::MaxBytes, 20_000 * 4096);
    for (era, empty, full) in [(Era::V6_1, 5000, 20_000), (Era::V3_6, 0, 200_000)] {
        let mut state = DeviceState::new(era);
        let DeviceState { law, device, shared, .. } = &mut state;
        assert_eq!(law.share(&view, 200_000, limits, device, shared), empty);
        let mut state = DeviceState::owning(era);
        let DeviceState { law, device, shared, .. } = &mut state;
        assert!(law.share(&view, 200_000, limits, device, shared).abs_diff(full) <= 1);
    }
}

/// As `bdi_ratio_from_pages` does when the file in sysfs is written: a tenth of 200,000 pages is a tenth of each limit.
#[test]
fn bytes_become_a_ratio_when_they_are_set_and_follow_the_limit() {
    let mut view = view(0, 0, DeviceCounts::default(), 0);
    let limits = |dirty| Limits { dirty, background: dirty / 2 };
    let mut state = DeviceState::owning(Era::V6_1);
    let mut share = |view: &View, dirty| {
        let DeviceState { law, device, shared, .. } = &mut state;
        law.share(view, dirty, limits(dirty), device, shared)
    };
    let all = view.knobs.own;
    view.knobs.own = all.with(KernelKnob::MaxBytes, 20_000 * 4096);
    assert_eq!((share(&view, 200_000), share(&view, 50_000)), (20_000, 5000));
    view.knobs.own = all.with(KernelKnob::MaxBytes, 10_000 * 4096);
    assert_eq!((share(&view, 50_000), share(&view, 200_000)), (10_000, 40_000), "set anew, of a smaller limit");
    view.knobs.own = all;
    assert!(share(&view, 100_000).abs_diff(100_000) <= 1, "the ratio is back");
}

/// `max_prop_frac`: a device with a maximum counts completions up to it.
#[test]
fn a_maximum_in_bytes_caps_the_fraction_of_completions_as_one_in_percent_does() {
    let fraction = |knob, value| {
        let mut state = DeviceState::new(Era::V6_1);
        let mut other = flexible::Local::default();
        let DeviceState { law, device, shared, .. } = &mut state;
        shared.completions.add(&mut other, 9000, flexible::WHOLE, Nanos(0));
        let mut view = view(0, 0, DeviceCounts::default(), 0);
        view.knobs.own = view.knobs.own.with(knob, value);
        law.wrote(&view, 100_000, device, shared);
        shared.completions.fraction(&mut device.completions).of(1_000_000)
    };
    let capped = fraction(KernelKnob::MaxRatio, 10);
    assert!((90_000..=110_000).contains(&capped), "{capped}");
    assert_eq!(fraction(KernelKnob::MaxBytes, 20_000 * 4096), capped);
    assert!(fraction(KernelKnob::MaxRatio, 100) > 900_000);
}

#[test]
fn a_strict_limit_throttles_below_the_global_one() {
    let mut state = DeviceState::owning(Era::V6_1);
    let device = DeviceCounts { reclaimable: 1900, ..DeviceCounts::default() };
    let mut strict = view(100, 1900, device, 100);
    strict.knobs.own = strict.knobs.own.with(KernelKnob::StrictLimit, 1).with(KernelKnob::MaxRatio, 1);
    assert!(matches!(state.decide(&strict), Admission::EnterAfter(Pause { cause: PauseCause::Rate, .. })));
    let mut over = view(400, 2000, DeviceCounts { reclaimable: 2000, ..DeviceCounts::default() }, 32);
    over.knobs = strict.knobs;
    let Admission::Pause(pause) = state.decide(&over) else { panic!("it waits") };
    assert_eq!(pause.cause, PauseCause::StrictLimit);
    let mut old = DeviceState::owning(Era::V3_6);
    assert_eq!(old.decide(&strict), Admission::Enter, "3.6 has none");
}

#[test]
fn background_by_time_by_table() {
    // 25 MB/s, and the start value of 100 MiB/s.
    for (average, centisecs, pages) in
        [(6400, 100, 6400), (6400, 200, 12_800), (6400, 300, 19_200), (25_600, 100, 25_600)]
    {
        for (reclaimable, over) in [(pages, false), (pages + 1, true)] {
            let mut state = DeviceState::owning(Era::V3_6);
            // The average counts, not the current estimate.
            state.device.bandwidth = Bandwidth { now: average / 2, average };
            let mut view = view(100, reclaimable, DeviceCounts { reclaimable, ..DeviceCounts::default() }, 32);
            view.knobs.background_centisecs = centisecs;
            let DeviceState { law, device, shared, .. } = &mut state;
            assert_eq!(law.is_over_background(&view, device, shared), over, "{average} {centisecs} {reclaimable}");
            state.decide(&view);
            assert_eq!(state.pace.wakes_flusher, over, "a writer below the ceiling asks for it too");
            let DeviceState { device, shared, .. } = &mut state;
            assert!(
                !Control { era: Era::V6_1, learns: Learns::Slices, ticks: TickRate::DEFAULT }
                    .is_over_background(&view, device, shared),
                "it was never merged"
            );
        }
    }
}

#[test]
fn time_without_writes_is_not_measured() {
    let mut state = DeviceState::owning(Era::V3_6);
    let later = view(60_000, 0, DeviceCounts { dirtied: 5000, written: 5000, ..DeviceCounts::default() }, 0);
    let DeviceState { law, device, shared, .. } = &mut state;
    law.slice_bytes(&later, device, shared);
    assert_eq!((device.updated, device.written), (60_000, 5000));
    let after = view(60_200, 0, DeviceCounts { written: 6280, ..DeviceCounts::default() }, 0);
    law.wrote(&after, 1280, device, shared);
    assert_eq!(device.bandwidth, Bandwidth { now: 24_662, average: 25_600 }, "6,400 a second, as in the table");
}

/// A law of 3.6 that updates at the flusher's passes, and its device.
fn by_passes() -> (Control, Device, Shared) {
    let law = Control { era: Era::V3_6, learns: Learns::Passes, ticks: TickRate::DEFAULT };
    (law, Device::default(), Shared::default())
}

fn written(ms: u64, written: u64) -> View {
    view(ms, 0, DeviceCounts { written, ..DeviceCounts::default() }, 0)
}

#[test]
fn by_passes_a_completed_write_teaches_nothing_and_the_next_pass_learns_it() {
    let (law, mut device, mut shared) = by_passes();
    // A pass every 300 ms, 25 MB/s: 6,400 pages a second.
    for pass in 0..=10 {
        law.slice_bytes(&written(pass * 300, pass * 1920), &mut device, &mut shared);
    }
    let learned = device.bandwidth;
    assert!(learned.now < 25_600, "{learned:?}");
    let done = Completed { pages: 1000, ..Completed::default() };
    law.completed(&written(3400, 40_000), &[done], &mut device, &mut shared);
    assert_eq!((device.bandwidth, device.updated), (learned, 3000), "a sync's writes end unseen");
    law.slice_bytes(&written(3500, 40_000), &mut device, &mut shared);
    assert!(device.bandwidth.now > learned.now && device.updated == 3500);
}

#[test]
fn by_passes_time_is_idle_only_if_the_run_began_after_the_last_update() {
    let (law, mut device, mut shared) = by_passes();
    law.slice_bytes(&written(300, 1920), &mut device, &mut shared);
    let before = device.bandwidth;
    // The run goes on: 2 s without an update were slow, and count.
    law.slice_bytes(&written(2300, 2000), &mut device, &mut shared);
    let slow = device.bandwidth;
    assert!(slow.now < before.now, "{slow:?} after {before:?}");
    // The run ends, and 2 s later another begins: this time was idle.
    assert!(!law.is_over_background(&written(2400, 2000), &mut device, &mut shared));
    law.slice_bytes(&written(4400, 2000), &mut device, &mut shared);
    assert_eq!((device.bandwidth, device.updated, device.written), (slow, 4400, 2000));
}

/// The estimate of a steady device then goes in steps, as traced beside ext4.
#[test]
fn a_page_counts_as_under_writeback_until_its_extent_ends() {
    for (era, writeback, longest, unended) in
        [(Era::V6_1, 100, 2048, 952), (Era::V6_1, 100, 1, 0), (Era::V6_1, 0, 2048, 0), (Era::V3_6, 100, 2048, 0)]
    {
        let mut view = view(0, 0, DeviceCounts { writeback, written: 3000, ..DeviceCounts::default() }, 0);
        view.knobs.own = view.knobs.own.with(KernelKnob::ExtentPages, longest);
        let DeviceState { law, mut device, mut shared, .. } = DeviceState::new(era);
        law.completed(&view, &[Completed::default()], &mut device, &mut shared);
        assert_eq!(
            (device.unended, law.now(&view, &shared).dirty),
            (unended, unended),
            "{era:?} {writeback} {longest}"
        );
    }
}

/// A device beside ext4.
fn writes(ms: u64, written: u64, writeback: u64) -> View {
    let mut view = view(ms, 0, DeviceCounts { writeback, written, ..DeviceCounts::default() }, 0);
    view.knobs.own = view.knobs.own.with(KernelKnob::ExtentPages, 2048);
    view
}

/// The slice begins after 2,600 pages. The bandwidth's update leaves unended pages out, as `wb_update_bandwidth` does:
/// it counts `WB_WRITTEN`.
#[test]
fn an_extent_ends_with_the_flushers_slice() {
    let DeviceState { law, mut device, mut shared, .. } = DeviceState::new(Era::V6_1);
    law.slice_bytes(&writes(0, 2500, 100), &mut device, &mut shared);
    law.completed(&writes(0, 3000, 100), &[Completed::default()], &mut device, &mut shared);
    assert_eq!(device.unended, 400);
    law.slice_bytes(&writes(300, 3000, 100), &mut device, &mut shared);
    assert_eq!((device.updated, device.written), (300, 2600));
}

/// NR_WRITEBACK is one count for the machine.
#[test]
fn the_machines_dirty_pages_have_the_unended_ones_of_all_devices() {
    let DeviceState { law, mut shared, mut device, .. } = DeviceState::new(Era::V6_1);
    let mut other = Device::default();
    let done = Completed::default();
    law.completed(&writes(0, 3000, 100), &[done], &mut device, &mut shared);
    law.completed(&writes(0, 500, 100), &[done], &mut other, &mut shared);
    assert_eq!(law.now(&writes(0, 500, 100), &shared).dirty, 952 + 500);
    law.completed(&writes(0, 3100, 0), &[done], &mut device, &mut shared);
    assert_eq!(law.now(&writes(0, 500, 100), &shared).dirty, 500);
}

/// The allowance of a task is 32 pages at first, that of a CPU a 32nd of a CPU's part of the memory.
#[test]
fn a_writer_checks_when_its_pages_or_those_of_its_cpu_are_used_up() {
    let mut state = DeviceState::new(Era::V6_1);
    let mut others = Task::default();
    let writer = Dirtier { pages: 20, cpu: 1, cpus: 2, memory_pages: 2560 };
    let DeviceState { law, task, device, shared, .. } = &mut state;
    assert_eq!(law.allowance_pages(&Dirtier { pages: 0, ..writer }, task, device, shared), 32, "before it begins");
    assert_eq!(law.allowance_pages(&writer, task, device, shared), 12);
    assert_eq!(law.allowance_pages(&writer, &mut others, device, shared), 0, "40 pages on a CPU with 40 of 2,560");
    assert_eq!(law.allowance_pages(&Dirtier { pages: 11, cpu: 0, ..writer }, task, device, shared), 1);
    assert_eq!(law.allowance_pages(&Dirtier { pages: 1, cpu: 0, ..writer }, task, device, shared), 0);
    device.dirty_exceeded = true;
    let mut new = Task::default();
    assert_eq!(law.allowance_pages(&Dirtier { pages: 7, ..writer }, &mut new, device, shared), 1, "8 while it is over");
    assert_eq!(law.allowance_pages(&Dirtier { pages: 1, ..writer }, &mut new, device, shared), 0);
}
