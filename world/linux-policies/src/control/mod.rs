//! The control law of Linux 3.2 and later: `linux-3.6` and `linux-6.1`.
//!
//! No writer waits up to the free-running ceiling F, half-way between the background threshold and the limit. Above it,
//! a writer that has used up its allowance sleeps until it dirties no faster than its rate: the device's rate limit
//! (`rate`) times the factor of its position (`position`). Time spent elsewhere since its last pause counts as sleep,
//! and a sleep beyond the longest is carried on as debt (`pauses`). Estimates are updated at most every 200 ms, by
//! throttled writers and by ends of a file's writeback (in 3.6: by passes of the flusher). A device's share of the
//! limit is its fraction of recent completions (`proportions::flexible`). The limit itself falls slowly (`hard_limit`).
//!
//! Sources: Linux 6.1, `mm/page-writeback.c` and `fs/fs-writeback.c`; for 3.6 the same functions under their older
//! names. `linux-3.6` has the knob of seed S4: background writeback also goes on while the device's reclaimable pages
//! exceed its smoothed bandwidth × `dirty_background_centisecs` / 100 (the seed's `over_dirty_bground_time`).
//! `linux-6.1` has strict limits, and minimum and maximum in bytes as in later kernels.
//!
//! The flusher runs as the kernels' does (`periodic`). Under `linux-6.1` writeback ends by extents (`extents`).
//!
//! Not modelled: memory cgroups, real-time writers, pages that exiting writers left unpaid, the local
//! throttle of loop devices and servers. A writer is an open file.
//!
//! Owns: the decision, the updates. Does not own: the formulas, which have modules of their own.
//! Invariants: a writer sleeps at most 200 ms and a tick at a time. With a rate above 0 it sleeps at most once in a
//! call.

mod bandwidth;
mod extents;
mod hard_limit;
mod pauses;
mod periodic;
mod position;
mod rate;

use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, DevicePolicy, Dirtier, DirtyFiles, FlushSlice, LentMemory, LimitPages, Needs,
    Next, Pace, Pause, PauseCause, View,
};

use self::bandwidth::Bandwidth;
use self::extents::Extents;
use self::hard_limit::HardLimit;
use self::periodic::{Periodic, Seen, Step};
use self::position::{NeverZero, Position};
use self::rate::{Observed, RateLimit};
use crate::jiffies::{TickRate, log2};
use crate::knobs::KernelKnob;
use crate::limits::{Limits, PAGE_BYTES, dirtyable_modern, limits_6_1, limits_2012};
use crate::needs::{LACKING_IN_3_6, LACKING_IN_6_1, NEEDS};
use crate::proportions::flexible;

/// Pages of a new writer until its first check.
const TASK_PAGES: u64 = 32;
/// Pages of a writer between checks while its device is over its limit: 32 KiB.
const EXCEEDED_PAGES: u64 = 8;
/// 100 % in the unit of shares.
const ALL: u64 = 1_000_000;

/// The kernel's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    V3_6,
    V6_1,
}

/// The events that update a device's bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learns {
    /// Throttled writers and passes of the device's flusher. Time is idle if it is more than a second without an
    /// update, and the last update was before the flusher's run began. Pages that a sync writes count only at the next
    /// such event. As posted for Linux 3.2, and so until 5.15 (`__bdi_update_bandwidth`).
    Passes,
    /// Throttled writers and each completed write, a sync's included. Time is idle if no write was in flight for more
    /// than a second. No kernel learns so.
    Completions,
    /// Throttled writers and the flusher at the end of a slice, each if more than 200 ms have passed; and 200 ms after
    /// the last write in flight. Time is idle as for `Completions`. So since Linux 5.16 (`balance_dirty_pages`,
    /// `do_writepages`, `wb_inode_writeback_end`; a file is a device here). Traced in 6.1: a rate limit moves every 204
    /// ms with ticks of 4 ms.
    Slices,
}

/// The law.
pub(crate) struct Control {
    pub(crate) era: Era,
    pub(crate) learns: Learns,
    /// Pauses are whole ticks, rounded down: with fewer ticks a second, a writer gets more done.
    pub(crate) ticks: TickRate,
}

/// The memory of a writer, in ticks and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The planned end of its last pause; 0 before the first.
    paused_when: u64,
    /// Pages dirtied since a check that settled them (`nr_dirtied`).
    dirtied: u64,
    /// Pages until the next check (`nr_dirtied_pause`).
    allowance: u64,
    /// Pages that the present call pays for, if it is asked about again: a call that sleeps at a rate of 0 has not
    /// paid (`pages_dirtied` in the loop of `balance_dirty_pages`).
    unpaid: Option<u64>,
}

impl Default for Task {
    fn default() -> Self {
        Self { paused_when: 0, dirtied: 0, allowance: TASK_PAGES, unpaid: None }
    }
}

/// The memory of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Device {
    bandwidth: Bandwidth,
    rate: RateLimit,
    completions: flexible::Local,
    /// Time of the last update of the estimates, in ticks, and the pages dirtied and written until then.
    updated: u64,
    dirtied: u64,
    written: u64,
    dirty_exceeded: bool,
    /// Begin of the flusher's run, in ticks, if it is in one.
    run_began: Option<u64>,
    /// The tick of the update after the last write in flight.
    update_due: Option<u64>,
    periodic: Periodic,
    extents: Extents,
    /// Written pages of extents that have not ended.
    unended: u64,
    /// A writer has asked for background writeback since the flusher last looked.
    woken: bool,
    /// `dirty_background_centisecs` when the flusher last looked.
    centisecs: u64,
    min: Converted,
    max: Converted,
}

/// A number of bytes that was made a ratio of the dirty limit when it was set (`bdi_ratio_from_pages`, Linux 6.2). The
/// ratio stays when the limit moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Converted {
    bytes: u64,
    /// Of [`ALL`].
    ratio: u64,
}

impl Converted {
    /// The ratio of so many bytes, with a limit of so many pages now.
    fn of(&mut self, bytes: u64, limit: u64) -> u64 {
        if self.bytes != bytes {
            *self = Self { bytes, ratio: (bytes / PAGE_BYTES * ALL / limit.max(1)).min(ALL) };
        }
        self.ratio
    }
}

/// The least and the largest share of the dirty limit that a device may have, of [`ALL`].
struct Bounds {
    min: u64,
    max: u64,
}

/// The memory of all devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    hard_limit: HardLimit,
    completions: flexible::Global,
    /// The unended pages of all devices. They are part of the kernel's NR_WRITEBACK.
    unended: u64,
    /// Pages that the writers of a CPU may dirty together until one of them checks (`ratelimit_pages`), once known.
    cpu_pages: Option<u64>,
    /// Pages dirtied on each CPU since the last check there (`bdp_ratelimits`).
    cpus: Vec<u64>,
}

impl Shared {
    /// Writers of a CPU dirty more pages; returns how many they have dirtied since the last check there.
    fn dirties(&mut self, writer: &Dirtier) -> &mut u64 {
        let cpu = writer.cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, 0);
        }
        self.cpus[cpu] += writer.pages;
        &mut self.cpus[cpu]
    }
}

/// Pages that the writers of a CPU may dirty together, of so many pages for all CPUs.
fn cpu_pages(pages: u64, cpus: u64) -> u64 {
    (pages / (32 * cpus.max(1))).max(16)
}

/// The counts for a decision.
struct Now {
    ticks: u64,
    limits: Limits,
    /// Pages not under writeback.
    reclaimable: u64,
    /// Pages under writeback included.
    dirty: u64,
}

impl Control {
    fn now(&self, view: &View, shared: &Shared) -> Now {
        let reclaimable = view.shared.dirty;
        let dirty = reclaimable + view.shared.writeback + shared.unended;
        Now { ticks: self.ticks.at(view.now), limits: self.limits_now(view), reclaimable, dirty }
    }

    /// Counts the device's unended pages after a write.
    fn count_unended(&self, view: &View, device: &mut Device, shared: &mut Shared) {
        let under_way = self.era == Era::V6_1 && view.device().writeback > 0;
        let longest = view.knobs.own.get(KernelKnob::ExtentPages).max(1);
        let unended = if under_way { device.extents.unended(view.device().written, longest) } else { 0 };
        shared.unended = shared.unended + unended - device.unended;
        device.unended = unended;
    }

    fn limits_now(&self, view: &View) -> Limits {
        let dirtyable = dirtyable_modern(view);
        match self.era {
            Era::V3_6 => limits_2012(dirtyable, &view.knobs),
            Era::V6_1 => limits_6_1(dirtyable, &view.knobs),
        }
    }

    fn is_strict(&self, view: &View) -> bool {
        self.era == Era::V6_1 && view.knobs.own.get(KernelKnob::StrictLimit) > 0
    }

    /// Minimum and maximum in millionths. Those in bytes are converted when they are set.
    fn bounds(&self, view: &View, limit: u64, device: &mut Device) -> Bounds {
        let own = |knob| view.knobs.own.get(knob);
        let scaled = |converted: &mut Converted, bytes: u64, ratio: u64| match (self.era, bytes) {
            (Era::V3_6, _) | (_, 0) => {
                *converted = Converted::default();
                ratio * (ALL / 100)
            }
            (Era::V6_1, bytes) => converted.of(bytes, limit),
        };
        let min = scaled(&mut device.min, own(KernelKnob::MinBytes), own(KernelKnob::MinRatio));
        let max = scaled(&mut device.max, own(KernelKnob::MaxBytes), own(KernelKnob::MaxRatio));
        Bounds { min, max }
    }

    /// The device's share of a limit: its fraction of the part that no minimum claims, plus its own minimum, at most
    /// its maximum.
    fn share(&self, view: &View, of: u64, limits: Limits, device: &mut Device, shared: &mut Shared) -> u64 {
        let own = |knob| view.knobs.own.get(knob);
        let Bounds { min, max } = self.bounds(view, limits.dirty, device);
        let of_others = view.knobs.own_sums.get(KernelKnob::MinRatio).saturating_sub(own(KernelKnob::MinRatio));
        let claimed = (of_others * (ALL / 100) + min).min(ALL);
        let part = |millionths: u64| (u128::from(of) * u128::from(millionths) / u128::from(ALL)) as u64;
        shared.completions.advance(view.now);
        let fraction = shared.completions.fraction(&mut device.completions);
        (fraction.of(part(ALL - claimed)) + part(min)).min(part(max))
    }

    fn position(
        &self,
        view: &View,
        now: &Now,
        device_dirty: u64,
        device: &mut Device,
        shared: &mut Shared,
    ) -> Position {
        let share = self.share(view, now.limits.dirty, now.limits, device, shared);
        let Limits { dirty, background } = now.limits;
        Position {
            limits: now.limits,
            hard_limit: shared.hard_limit.pages(dirty),
            dirty: now.dirty,
            share,
            share_background: (share * background).checked_div(dirty).unwrap_or(0),
            device_dirty,
            bandwidth: device.bandwidth.average,
            strict: self.is_strict(view),
            never_zero: if self.era == Era::V3_6 { NeverZero::PlusOne } else { NeverZero::LastBit },
        }
    }

    /// Updates the estimates if 200 ms have passed; with a position, also the rates.
    fn update(&self, now: &Now, view: &View, position: Option<&Position>, device: &mut Device, shared: &mut Shared) {
        let hz = self.ticks.a_second();
        let elapsed = now.ticks.saturating_sub(device.updated);
        if elapsed < hz / 5 || self.learns == Learns::Slices && elapsed == hz / 5 {
            return;
        }
        // The call of a writer begins with this decision.
        let began = if position.is_some() { now.ticks } else { device.run_began.unwrap_or(now.ticks) };
        if self.learns == Learns::Passes && elapsed > hz && device.updated < began {
            device.begins_anew(now.ticks, view);
            return;
        }
        let (dirtied, written) = (view.device().dirtied, view.device().written - device.unended);
        if let Some(position) = position {
            shared.hard_limit.update(now.limits.dirty, now.dirty, now.ticks, hz / 5);
            let (dirty, setpoint) = match position.strict {
                false => (position.dirty, position.setpoint()),
                true if position.device_dirty < 8 => (position.device_dirty, position.device_dirty + 1),
                true => (position.device_dirty, (position.share + position.share_background) / 2),
            };
            device.rate.update(&Observed {
                factor: position.factor(),
                dirty_rate: dirtied.saturating_sub(device.dirtied) * hz / elapsed,
                bandwidth: device.bandwidth.average,
                dirty,
                setpoint,
            });
        }
        device.bandwidth.update(hz, elapsed, written.saturating_sub(device.written));
        (device.updated, device.dirtied, device.written) = (now.ticks, dirtied, written);
    }

    /// The length of a sleep of `pause` ticks. Since Linux 4.8 the timer wheel rounds up, so that no timer is early.
    /// The sleeper wakes up to a tick late, and the next pause is shorter by that time (`calc_index` in
    /// kernel/time/timer.c; traced: after a pause `think` is a tick).
    fn sleep_ns(&self, view: &View, pause: u64) -> u64 {
        match self.era {
            Era::V3_6 => self.ticks.ns(pause),
            Era::V6_1 => self.ticks.until(view.now, self.ticks.at(view.now) + pause + 1),
        }
    }

    /// Makes up for the update that was due 200 ms after the last write in flight. The device has done nothing since
    /// then, so the present counts are right.
    fn update_late(&self, view: &View, device: &mut Device) {
        let (now, hz) = (self.ticks.at(view.now), self.ticks.a_second());
        let Some(due) = device.update_due.filter(|due| *due <= now) else { return };
        device.update_due = None;
        let elapsed = due.saturating_sub(device.updated).max(1);
        device.bandwidth.update(hz, elapsed, view.device().written.saturating_sub(device.written));
        device.begins_anew(due, view);
    }

    /// Leaves idle time out: after more than a second without a write in flight, the estimates start afresh.
    fn skip_idle(&self, view: &View, device: &mut Device) {
        let now = self.ticks.at(view.now);
        if now.saturating_sub(device.updated) > self.ticks.a_second() && view.device().writeback == 0 {
            device.begins_anew(now, view);
        }
    }

    /// The flusher begins a pass, or has ended its last: updates the estimates with the writes since the last update.
    fn passes(&self, view: &View, device: &mut Device, shared: &mut Shared) {
        let now = Now::of(self.ticks.at(view.now));
        device.run_began.get_or_insert(now.ticks);
        self.update(&now, view, None, device, shared);
    }

    /// Seed S4: pages that the device writes in the configured time, if one is set.
    fn time_pages(&self, view: &View, device: &Device) -> Option<u64> {
        let centisecs = view.knobs.background_centisecs;
        (self.era == Era::V3_6 && centisecs > 0).then(|| device.bandwidth.average * centisecs / 100)
    }

    fn is_over_time(&self, view: &View, device: &Device) -> bool {
        self.time_pages(view, device).is_some_and(|pages| view.device().reclaimable > pages)
    }

    /// The next step of the flusher's run.
    fn next_of_run(&self, view: &View, files: &dyn DirtyFiles, device: &mut Device, shared: &mut Shared) -> Next {
        let now = self.now(view, shared);
        let is_set = std::mem::replace(&mut device.centisecs, view.knobs.background_centisecs) != device.centisecs;
        // Seed S4: a write to the knob begins background writeback, if it makes too much dirty.
        device.woken |= is_set && self.is_over_time(view, device);
        let seen = Seen {
            now: view.now,
            ticks: self.ticks,
            dirty_since: files.dirty_since(true).filter(|_| files.has_any()),
            has_round: files.has_round(),
            expire_ns: view.knobs.expire_ns,
            interval_ns: view.knobs.interval_ns,
            coarse_timers: self.era == Era::V6_1,
            submitted: view.device().written + view.device().writeback,
            pages_and_inodes: now.reclaimable + view.knobs.own.get(KernelKnob::InodesInUse),
            woken: std::mem::take(&mut device.woken),
        };
        match device.periodic.step(&seen) {
            Step::SleepUntil(instant) => {
                if device.run_began.is_some() {
                    self.passes(view, device, shared);
                    device.run_began = None;
                }
                Next::WaitUntil(instant)
            }
            Step::Old { before } => Next::FlushSlice(FlushSlice::Queued { before }),
            Step::Background if self.is_over_background(view, device, shared) => Next::FlushSlice(FlushSlice::InOrder),
            Step::Background => Next::WaitUntil(device.periodic.ends(&seen)),
        }
    }

    fn start_background_if_over(&self, view: &View, now: &Now, device: &Device, pace: &mut Pace) {
        if !view.device().flushing && (now.reclaimable > now.limits.background || self.is_over_time(view, device)) {
            pace.wakes_flusher = true;
        }
    }
}

/// The writer's pause by its account at the task's rate. `None` if it is below the shortest pause; it is then carried
/// on.
fn sleep(now: u64, task: &mut Task, plan: &Plan) -> Option<u64> {
    let Plan { hz, task_rate, max_pause, min_pause, poll_pages } = *plan;
    let mut now = now;
    let pages = task.unpaid.take().unwrap_or(task.dirtied);
    let pause = if let Some(period) = (hz * pages).checked_div(task_rate) {
        let mut pause = period as i64;
        if task.paused_when > 0 {
            pause -= now as i64 - task.paused_when as i64;
        }
        if pause < min_pause as i64 {
            // Credit is carried on, but at most a second of it.
            if pause < -(hz as i64) {
                task.paused_when = now;
                task.dirtied = 0;
            } else if period > 0 {
                task.paused_when += period;
                task.dirtied = 0;
            } else if task.allowance <= pages {
                task.allowance += pages;
            }
            return None;
        }
        let pause = pause as u64;
        if pause > max_pause {
            now += (pause - max_pause).min(max_pause);
        }
        pause.min(max_pause)
    } else {
        task.unpaid = Some(pages);
        max_pause
    };
    task.paused_when = now + pause;
    task.dirtied = 0;
    task.allowance = poll_pages.max(1);
    Some(pause)
}

/// The inputs of a writer's pause, in ticks and pages.
struct Plan {
    /// Ticks a second.
    hz: u64,
    task_rate: u64,
    max_pause: u64,
    min_pause: u64,
    poll_pages: u64,
}

impl Control {
    /// Counts completed writes of the device.
    fn wrote(&self, view: &View, pages: u64, device: &mut Device, shared: &mut Shared) {
        self.update_late(view, device);
        let largest = flexible::WHOLE * self.bounds(view, self.limits_now(view).dirty, device).max / ALL;
        shared.completions.add(&mut device.completions, pages, largest, view.now);
        let now = self.ticks.at(view.now);
        match self.learns {
            Learns::Completions => self.update(&Now::of(now), view, None, device, shared),
            Learns::Slices if view.device().writeback == 0 => {
                device.update_due.get_or_insert(now + self.ticks.a_second() / 5);
            }
            Learns::Slices | Learns::Passes => {}
        }
    }
}

impl Now {
    /// The counts of an update without a position.
    fn of(ticks: u64) -> Self {
        Self { ticks, limits: Limits { dirty: 0, background: 0 }, reclaimable: 0, dirty: 0 }
    }
}

impl Device {
    /// Leaves out the pages dirtied and written so far, which say nothing about a rate.
    fn begins_anew(&mut self, now: u64, view: &View) {
        (self.updated, self.dirtied, self.written) = (now, view.device().dirtied, view.device().written);
    }
}

impl DevicePolicy for Control {
    type Payer = Task;
    type Device = Device;
    type Shared = Shared;

    fn name(&self) -> &'static str {
        match (self.era, self.learns) {
            (Era::V3_6, Learns::Passes) => "linux-3.6",
            (Era::V3_6, Learns::Completions | Learns::Slices) => "linux-3.6-completions",
            (Era::V6_1, _) => "linux-6.1",
        }
    }

    fn needs(&self) -> Needs {
        let ignores = if self.era == Era::V3_6 { LACKING_IN_3_6 } else { LACKING_IN_6_1 };
        Needs { ignores, ..NEEDS }
    }

    fn pause_ns_max(&self) -> u64 {
        let ticks = self.ticks.a_second() / 5;
        // The sleep lasts to the tick after the last: see `sleep_ns`.
        self.ticks.ns(if self.era == Era::V6_1 { ticks + 1 } else { ticks })
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace::UNASKED
    }

    /// A writer checks once it has dirtied its allowance, or once the writers of its CPU together have dirtied theirs
    /// (`balance_dirty_pages_ratelimited`).
    fn allowance_pages(&self, writer: &Dirtier, task: &mut Task, device: &mut Device, shared: &mut Shared) -> u64 {
        let of_cpu = *shared.cpu_pages.get_or_insert_with(|| cpu_pages(writer.memory_pages, writer.cpus));
        let allowance = if device.dirty_exceeded { task.allowance.min(EXCEEDED_PAGES) } else { task.allowance };
        task.dirtied += writer.pages;
        let on_cpu = shared.dirties(writer);
        let is_due = writer.pages > 0 && (task.dirtied >= allowance || *on_cpu >= of_cpu);
        if is_due {
            *on_cpu = 0;
            return 0;
        }
        allowance.saturating_sub(task.dirtied).min(of_cpu)
    }

    fn charge_bounds(&self, _: &View, _: &mut Device) -> ChargeBounds {
        ChargeBounds::UNLIMITED
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        let LentMemory { payer: task, device, shared, pace } = memory;
        self.update_late(view, device);
        let (now, hz) = (self.now(view, shared), self.ticks.a_second());
        let limits = now.limits;
        shared.cpu_pages = Some(cpu_pages(limits.dirty, view.cpus));
        let strict = self.is_strict(view);
        let unended = device.unended;
        let device_dirty = |view: &View| view.device().reclaimable + view.device().writeback + unended;
        let mut of_device = None;
        let (dirty, thresh, freerun) = if strict {
            let share = self.share(view, limits.dirty, limits, device, shared);
            let background = (share * limits.background).checked_div(limits.dirty).unwrap_or(0);
            (*of_device.insert(device_dirty(view)), share, (share + background) / 2)
        } else {
            (now.dirty, limits.dirty, limits.freerun())
        };
        self.start_background_if_over(view, &now, device, pace);
        pace.wakes_flusher |= dirty > freerun && !view.device().flushing;
        device.woken |= pace.wakes_flusher;
        if dirty <= freerun {
            task.paused_when = now.ticks;
            task.dirtied = 0;
            task.unpaid = None;
            task.allowance = pauses::poll_pages(dirty, thresh);
            device.dirty_exceeded = false;
            return Admission::Enter;
        }
        let device_dirty = of_device.unwrap_or_else(|| device_dirty(view));
        let position = self.position(view, &now, device_dirty, device, shared);
        device.dirty_exceeded = device_dirty > position.share && (now.dirty > limits.dirty || strict);
        self.update(&now, view, Some(&position), device, shared);
        let task_rate = (device.rate.limit * position.factor()) >> 10;
        let max_pause = pauses::max_pause(hz, device.bandwidth.average, device_dirty);
        let (min_pause, poll_pages) =
            pauses::min_pause(hz, device.bandwidth.average, device.rate.limit, task_rate, max_pause);
        let plan = Plan { hz, task_rate, max_pause, min_pause, poll_pages };
        let Some(pause) = sleep(now.ticks, task, &plan) else {
            return Admission::Enter;
        };
        let cause = match (task_rate, strict) {
            (0, false) => PauseCause::GlobalLimit,
            (0, true) => PauseCause::StrictLimit,
            _ => PauseCause::Rate,
        };
        // So few pages of a device may be an error of its counters.
        let counter_error = view.cpus * 8 * (1 + u64::from(log2(view.cpus)));
        let enough = task_rate > 0 || device_dirty <= counter_error;
        if enough {
            task.unpaid = None;
        }
        let pause = Pause { ns: self.sleep_ns(view, pause.max(1)), cause };
        if enough { Admission::EnterAfter(pause) } else { Admission::Pause(pause) }
    }

    fn completed(&self, view: &View, ends: &[Completed], device: &mut Device, shared: &mut Shared) {
        self.count_unended(view, device, shared);
        ends.iter().filter(|done| done.pages > 0).for_each(|done| self.wrote(view, done.pages, device, shared));
    }

    fn is_over_background(&self, view: &View, device: &mut Device, shared: &mut Shared) -> bool {
        let now = self.now(view, shared);
        let of_device = self.share(view, now.limits.background, now.limits, device, shared);
        if self.learns == Learns::Passes && device.run_began.is_some() {
            self.passes(view, device, shared);
        }
        let over = now.reclaimable > now.limits.background
            || view.device().reclaimable > of_device
            || self.is_over_time(view, device);
        if !over {
            device.run_began = None;
        }
        over
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut Device, shared: &mut Shared) -> Next {
        self.next_of_run(view, files, device, shared)
    }

    fn slice_bytes(&self, view: &View, device: &mut Device, shared: &mut Shared) -> u64 {
        match self.learns {
            Learns::Passes => self.passes(view, device, shared),
            Learns::Completions => self.skip_idle(view, device),
            Learns::Slices => {
                self.update_late(view, device);
                self.skip_idle(view, device);
                self.update(&Now::of(self.ticks.at(view.now)), view, None, device, shared);
            }
        }
        let limit = shared.hard_limit.pages(self.limits_now(view).dirty);
        let pages = pauses::chunk_pages(device.bandwidth.average, limit, device.periodic.asked());
        device.periodic.slice_begins();
        device.extents.slice_begins(view.device().written + view.device().writeback);
        pages.saturating_mul(PAGE_BYTES)
    }

    fn limits(&self, view: &View, device: &mut Device, shared: &mut Shared) -> LimitPages {
        let limits = self.limits_now(view);
        let dirty =
            if self.is_strict(view) { self.share(view, limits.dirty, limits, device, shared) } else { limits.dirty };
        let background = limits.background.min(self.time_pages(view, device).unwrap_or(u64::MAX));
        LimitPages { dirty, background, bandwidth: Some(device.bandwidth.average) }
    }
}

#[cfg(test)]
mod tests;
