//! The law of 2009: a writer over the limit writes back itself, and its seven variants.
//!
//! A CPU's writers are let through until they have dirtied `ratelimit_pages` together: all memory / 32 /
//! CPUs, between 16 and 1,024; 8 once the device is flagged as over. Then one of them goes through the
//! loop. **Before seed S0** (`linux-2.6.31-rc1`, `linux-2.6.31`, `linux-2.6.32`; kernel-facts, section 1.1),
//! each pass: the limits of all devices from dirtyable memory; the device's share of the limit (its
//! fraction of recent completions), cut to the headroom that all leave plus what the device has itself;
//! less up to an eighth for a writer that did all the dirtying lately. The writer leaves if the device has no
//! more than its share, or all together less than half-way between background and limit. Else the device is
//! flagged, the writer writes 1.5 × `ratelimit_pages` of it (rc1: if anything is dirty there; later: only if
//! what is dirty there exceeds the share), the limits are computed again, and it leaves if the device is
//! below its share or the chunk is written; otherwise it waits up to 100 ms for congestion to clear and
//! begins again. On the way out the flag is cleared if the device is below its share, and background
//! writeback asked for if the dirty counters, read once more, exceed the threshold. 2.6.32 sleeps 1 ms,
//! doubling to 100, instead of waiting for congestion (from memory).
//!
//! **The reordering of seed S0** (kernel-facts, section 1.2) has no clip to the headroom, one copy of the
//! tests, counts writeback through copies, and asks about background from what it has read. What the posts
//! do not say about the first form is taken from the August one:
//! - `s0-july`: clears the flag only where the device has no more than its share, not on the other exits.
//! - `s0-seed`: the same without that: the flag is cleared on every exit below the share.
//! - `s0-august`: as the seed, but over the limit of all devices nobody leaves for being below the share.
//! - `s0-september`: over is: the device at its share or more, or all at the limit or more. Leaves when not
//!   over, below the half-way mark, or when the chunk is written.
//! - `s0-merged` (in 2.6.36, from memory): reads the dirty counters first and leaves at or below the
//!   half-way mark before anything of the device is read; then as September, with "more than" for "or more".
//!
//! All seven but 2.6.32 go with the pdflush pool (`pdflush`); the S0 variants differ from `linux-2.6.31` in
//! nothing else. A writer is an open file. Real-time and "less throttled" writers are not modelled, nor are
//! exact sums near small shares: here counters are exact.
//!
//! Owns: the decision. Does not own: the writing (the engine), the pool.
//! Invariants: how often a shared counter is read on each path is exactly what the tables say.

use engine::throttle::{Decision, Global, Law, LimitPages, Memory, Pace, Pause, PauseCause, Then, View, WokenBy};

use crate::jiffies::{HZ, ns};
use crate::limits::{Limits, dirtyable_2009, limits_2009};
use crate::proportions::floating::{self, shift_for};

/// Ticks of the longest wait between passes.
const WAIT_TICKS: u64 = HZ / 10;
/// Most pages that a flusher writes of one file before the next (`MAX_WRITEBACK_PAGES`).
pub(crate) const SLICE_PAGES: u64 = 1024;

/// Which form of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Rc1,
    Final,
    July,
    Seed,
    August,
    September,
    Merged,
    V2_6_32,
}

/// The law.
pub(crate) struct Balance {
    pub(crate) form: Form,
    /// What ends a wait for congestion.
    pub(crate) woken_by: WokenBy,
}

/// What is remembered of a writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    dirties: floating::Local,
    /// Set between a pass that wrote and what follows.
    wrote: Option<Pass>,
    /// Ticks of the next sleep, in 2.6.32.
    pause: u64,
}

/// What is remembered of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Device {
    completions: floating::Local,
}

/// What is remembered of all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shared {
    completions: floating::Global,
    dirties: floating::Global,
}

/// What a pass found.
#[derive(Clone, Copy, Debug)]
struct Pass {
    limits: Limits,
    share: u64,
    /// Of all devices, not under writeback.
    reclaimable: u64,
    /// Of all devices.
    total: u64,
    /// Of the device, not under writeback.
    own_reclaimable: u64,
    /// Of the device.
    own: u64,
}

impl Pass {
    fn below_midpoint(&self) -> bool {
        self.total < self.limits.freerun()
    }
}

/// 1.5 times what a CPU's writers may dirty between calls.
fn chunk_pages(pace: &Pace) -> u64 {
    pace.cpu_pages + pace.cpu_pages / 2
}

impl Balance {
    fn before_s0(&self) -> bool {
        matches!(self.form, Form::Rc1 | Form::Final | Form::V2_6_32)
    }

    /// The device's share of a limit.
    fn share(view: &View, dirty: u64, device: &mut Device, shared: &Shared) -> u64 {
        let knobs = &view.knobs;
        let fraction = shared.completions.fraction(&mut device.completions, shift_for(dirty));
        let shared_part = dirty * (100 - knobs.min_ratio_sum.min(100)) / 100;
        (fraction.of(shared_part) + dirty * knobs.min_ratio / 100).min(dirty * knobs.max_ratio / 100)
    }

    /// What the device's own and the headroom of all come to: four global reads and two of the device.
    fn headroom(view: &View, dirty: u64) -> u64 {
        let used = view.read(Global::Dirty)
            + view.read(Global::Writeback)
            + view.read(Global::Unstable)
            + view.read(Global::WritebackCopy);
        dirty.saturating_sub(used) + view.device_reclaimable() + view.device_writeback()
    }

    /// The share of a writer that did some of the recent dirtying.
    fn share_of_task(share: u64, dirty: u64, task: &mut Task, shared: &Shared) -> u64 {
        let fraction = shared.dirties.fraction(&mut task.dirties, shift_for(dirty));
        share.saturating_sub(fraction.of(share >> 3)).max(share / 2)
    }

    fn limits_now(view: &View) -> Limits {
        limits_2009(dirtyable_2009(view), &view.knobs)
    }

    fn shares(&self, view: &View, limits: Limits, task: &mut Task, device: &mut Device, shared: &Shared) -> u64 {
        let mut share = Self::share(view, limits.dirty, device, shared);
        if self.before_s0() {
            share = share.min(Self::headroom(view, limits.dirty));
        }
        Self::share_of_task(share, limits.dirty, task, shared)
    }

    /// One pass's reads, in the order of the form. The merged one stops short if nobody is to wait.
    fn look(&self, view: &View, task: &mut Task, device: &mut Device, shared: &Shared) -> Pass {
        if self.form == Form::Merged {
            let reclaimable = view.read(Global::Dirty) + view.read(Global::Unstable);
            let total = reclaimable + view.read(Global::Writeback);
            let limits = Self::limits_now(view);
            let mut pass = Pass { limits, share: 0, reclaimable, total, own_reclaimable: 0, own: 0 };
            if total > limits.freerun() {
                pass.share = self.shares(view, limits, task, device, shared);
                pass.own_reclaimable = view.device_reclaimable();
                pass.own = pass.own_reclaimable + view.device_writeback();
            }
            return pass;
        }
        let limits = Self::limits_now(view);
        let share = self.shares(view, limits, task, device, shared);
        let reclaimable = view.read(Global::Dirty) + view.read(Global::Unstable);
        let mut total = reclaimable + view.read(Global::Writeback);
        if !self.before_s0() {
            total += view.read(Global::WritebackCopy);
        }
        let own_reclaimable = view.device_reclaimable();
        let own = own_reclaimable + view.device_writeback();
        Pass { limits, share, reclaimable, total, own_reclaimable, own }
    }

    /// Whether a pass ends the call before anything is written.
    fn leaves(&self, pass: &Pass) -> bool {
        match self.form {
            Form::Rc1 | Form::Final | Form::V2_6_32 | Form::July | Form::Seed => {
                pass.own <= pass.share || pass.below_midpoint()
            }
            Form::August => (pass.own <= pass.share && pass.total <= pass.limits.dirty) || pass.below_midpoint(),
            Form::September | Form::Merged => !self.over(pass) || pass.below_midpoint(),
        }
    }

    /// September's and the merged form's idea of being over.
    fn over(&self, pass: &Pass) -> bool {
        if self.form == Form::September {
            pass.own >= pass.share || pass.total >= pass.limits.dirty
        } else {
            let midpoint = pass.total > pass.limits.freerun();
            midpoint && (pass.own > pass.share || pass.total > pass.limits.dirty)
        }
    }

    /// The way out: the flag, and background writeback.
    fn leave(&self, view: &View, pass: &Pass, in_test: bool, pace: &mut Pace) -> Decision {
        pace.exceeded &= match self.form {
            Form::July => !(in_test && pass.own <= pass.share),
            Form::September | Form::Merged => self.over(pass),
            _ => pass.own >= pass.share,
        };
        if !view.device().flushing {
            let reclaimable = match self.before_s0() {
                true => view.read(Global::Dirty) + view.read(Global::Unstable),
                false => pass.reclaimable,
            };
            pace.start_background = reclaimable > pass.limits.background;
        }
        Decision::Continue
    }

    fn wait(&self, task: &mut Task) -> Decision {
        let (ticks, cause, woken_by) = if self.form == Form::V2_6_32 {
            let ticks = task.pause.clamp(1, WAIT_TICKS);
            task.pause = 2 * ticks;
            (ticks, PauseCause::DeviceShare, WokenBy::Time)
        } else {
            (WAIT_TICKS, PauseCause::Congestion, self.woken_by)
        };
        Decision::Pause(Pause { ns: ns(ticks), cause, woken_by, then: Then::Decide })
    }

    /// What follows once the writer has written.
    fn after_writing(&self, view: &View, pass: Pass, memory: Memory<'_, Self>) -> Decision {
        let Memory { task, device, shared, pace } = memory;
        let mut pass = pass;
        if self.before_s0() {
            pass.limits = Self::limits_now(view);
            pass.share = self.shares(view, pass.limits, task, device, shared);
            pass.own_reclaimable = view.device_reclaimable();
            pass.own = pass.own_reclaimable + view.device_writeback();
            if pass.own <= pass.share {
                return self.leave(view, &pass, false, pace);
            }
        }
        if view.task.written >= chunk_pages(pace) { self.leave(view, &pass, false, pace) } else { self.wait(task) }
    }
}

impl Law for Balance {
    type Task = Task;
    type Device = Device;
    type Shared = Shared;

    fn name(&self) -> &'static str {
        match self.form {
            Form::Rc1 => "linux-2.6.31-rc1",
            Form::Final => "linux-2.6.31",
            Form::July => "s0-july",
            Form::Seed => "s0-seed",
            Form::August => "s0-august",
            Form::September => "s0-september",
            Form::Merged => "s0-merged",
            Form::V2_6_32 => "linux-2.6.32",
        }
    }

    fn pause_ns_max(&self) -> u64 {
        ns(WAIT_TICKS)
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        let cpu_pages = (memory_pages / (32 * cpus.max(1))).clamp(16, 1024);
        Pace { task_pages: u64::MAX, cpu_pages, exceeded: false, unpaid_pages: 0, start_background: false }
    }

    fn decide(&self, view: &View, memory: Memory<'_, Self>) -> Decision {
        let Memory { task, device, shared, pace } = memory;
        if view.task.pass == 0 {
            (task.pause, task.wrote) = (1, None);
            let limits = limits_2009(view.memory_pages, &view.knobs);
            shared.dirties.add(&mut task.dirties, pace.unpaid_pages, floating::WHOLE, shift_for(limits.dirty));
            pace.unpaid_pages = 0;
        }
        if let Some(pass) = task.wrote.take() {
            return self.after_writing(view, pass, Memory { task, device, shared, pace });
        }
        let mut pass = self.look(view, task, device, shared);
        if self.leaves(&pass) {
            return self.leave(view, &pass, true, pace);
        }
        pace.exceeded = true;
        let enough = if self.form == Form::Rc1 { 0 } else { pass.share };
        if pass.own_reclaimable > enough {
            task.wrote = Some(pass);
            return Decision::WriteBack { pages: chunk_pages(pace) };
        }
        if self.before_s0() && pass.own_reclaimable > 0 {
            pass.own_reclaimable = view.device_reclaimable();
            pass.own = pass.own_reclaimable + view.device_writeback();
        }
        if view.task.written >= chunk_pages(pace) {
            return self.leave(view, &pass, false, pace);
        }
        self.wait(task)
    }

    fn wrote(&self, view: &View, pages: u64, device: &mut Device, shared: &mut Shared) {
        let limits = limits_2009(view.memory_pages, &view.knobs);
        let largest = floating::WHOLE * view.knobs.max_ratio / 100;
        shared.completions.add(&mut device.completions, pages, largest, shift_for(limits.dirty));
    }

    fn over_background(&self, view: &View, _device: &mut Device, _shared: &mut Shared) -> bool {
        let reclaimable = view.read(Global::Dirty) + view.read(Global::Unstable);
        reclaimable > 0 && reclaimable >= Self::limits_now(view).background
    }

    fn slice_pages(&self, _view: &View, _device: &mut Device, _shared: &mut Shared) -> u64 {
        SLICE_PAGES
    }

    fn limits(&self, view: &View, device: &mut Device, shared: &mut Shared) -> LimitPages {
        let limits = Self::limits_now(view);
        LimitPages { dirty: Self::share(view, limits.dirty, device, shared), background: limits.background }
    }
}

#[cfg(test)]
mod tests;
