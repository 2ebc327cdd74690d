//! The law of 2009, in which a writer over the limit writes back itself, and its seven variants.
//!
//! The writers of a CPU go on until they have dirtied `ratelimit_pages` together: all memory / 32 / CPUs, between 16
//! and 1,024; or 8 once the device is flagged as over. Then one of them enters the loop.
//!
//! **Before seed S0** (`linux-2.6.31-rc1`, `linux-2.6.31`, `linux-2.6.32`; kernel-facts, section 1.1), each pass
//! computes the limits of all devices from dirtyable memory, then the device's share of the limit. The share is the
//! device's fraction of recent completions, cut to the headroom of all devices plus the device's own dirty pages. A
//! writer that did all the dirtying lately has up to an eighth less. The writer leaves if the device has no more than
//! its share, or if all devices together have less than half-way between background and limit.
//!
//! Otherwise the device is flagged, and the writer writes 1.5 × `ratelimit_pages` of it. (rc1 writes if the device has
//! any dirty page, later kernels only if its dirty pages exceed the share.) The limits are computed again, and the
//! writer leaves if the device is below its share or the chunk is written. Otherwise it waits up to 100 ms for
//! congestion to clear, and begins again. On the way out the flag is cleared if the device is below its share.
//! Background writeback is requested if the dirty counters, read once more, exceed the threshold. 2.6.32 sleeps 1 ms,
//! doubling to 100, instead of waiting for congestion (from memory).
//!
//! **The reordering of seed S0** (kernel-facts, section 1.2) has no clip to the headroom and one copy of the tests. It
//! counts writeback through copies, and decides about background from the counts that it has read. No available archive
//! has the first diff; where the seed's thread does not describe it, it is assumed to equal the August one. August and
//! September are as posted to linux-mm on 21 August and 4 September 2009:
//! - `s0-july`: clears the flag only if the device has no more than its share, not on the other exits.
//! - `s0-seed`: as July, but clears the flag on every exit below the share.
//! - `s0-august`: as the seed, but at or above the limit of all devices no writer leaves, neither below the share nor
//!   after a chunk. A writer that has written a chunk begins the loop again at once.
//! - `s0-september`: a writer is over if the device is at its share or more, or all devices are at the limit or more.
//!   It leaves when not over, below the half-way mark, or when the chunk is written; it reads the counters again before
//!   that.
//! - `s0-merged` (in 2.6.36): reads the dirty counters first, and leaves below the half-way mark before it reads a
//!   counter of the device. Its test for over is September's. The call ends with the chunk, as the reviewer of
//!   September's form had proposed. The doubling sleep of 1 ms is left to 2.6.32.
//!
//! In the first pass of a call, August's and September's code tests the variable for the device's dirty count before it
//! has assigned it, and reads the device's counters only if it is not 0. Here they are always read. If the variable
//! happens to hold 0, the result is the law without [`Part::DeviceTest`].
//!
//! All seven but 2.6.32 go with the pdflush pool (`pdflush`); the S0 variants differ from `linux-2.6.31` in nothing
//! else. A writer is an open file. Real-time and "less throttled" writers are not modelled, nor are exact sums near
//! small shares: here counters are exact.
//!
//! Owns: the decision. Does not own: the writing (the engine), the pool.
//! Invariants: the number of reads of shared counters on each path is exactly the one in the tables.

mod parts;

use afflux_engine::old_kernels::{AfterPause, Global, WokenBy, WriterDecision, WriterPace, WriterPause};
use afflux_engine::policy::{
    Admission, Completed, DevicePolicy, LimitPages, Memory, Needs, Pace, PauseCause, Room, View,
};

use crate::jiffies::TickRate;
use crate::knobs::KernelKnob;
use crate::limits::{Limits, PAGE_BYTES, dirtyable_2009, limits_2009};
use crate::needs::{LACKING_UNTIL_2_6_32, NEEDS};
use crate::proportions::floating::{self, shift_for};

pub use parts::Part;
use parts::Parts;

/// Ticks of the longest wait between passes.
const WAIT_TICKS: u64 = TickRate::DEFAULT.a_second() / 10;
/// Most pages that a flusher writes of one file before the next (`MAX_WRITEBACK_PAGES`).
pub(crate) const SLICE_PAGES: u64 = 1024;

/// The form of the loop.
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
    form: Form,
    parts: Parts,
    /// The event that ends a wait for congestion.
    woken_by: WokenBy,
}

/// The memory of a writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    dirties: floating::Local,
    /// Set between a pass that wrote and the decision after it.
    wrote: Option<Pass>,
    /// Ticks of the next sleep, in 2.6.32.
    pause: u64,
}

/// The memory of a device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Device {
    completions: floating::Local,
}

/// The memory of all devices.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shared {
    completions: floating::Global,
    dirties: floating::Global,
}

/// The counts that a pass has read.
#[derive(Clone, Copy, Debug)]
struct Pass {
    limits: Limits,
    share: u64,
    /// Pages of all devices, without those under writeback.
    reclaimable: u64,
    /// Pages of all devices.
    total: u64,
    /// Pages of the device, without those under writeback.
    own_reclaimable: u64,
    /// Pages of the device.
    own: u64,
}

impl Pass {
    fn below_midpoint(&self) -> bool {
        self.total < self.limits.freerun()
    }
}

/// 1.5 times the pages that a CPU's writers may dirty between calls.
fn chunk_pages(pace: &Pace) -> u64 {
    pace.old_kernel.cpu_pages + pace.old_kernel.cpu_pages / 2
}

impl Balance {
    pub(crate) fn new(form: Form, woken_by: WokenBy) -> Self {
        Self { form, parts: Parts::of(form), woken_by }
    }

    /// Sets or clears these parts of the form.
    pub(crate) fn changed(mut self, changes: &[(Part, bool)]) -> Self {
        self.parts = changes.iter().fold(self.parts, |parts, (part, on)| parts.set(*part, *on));
        self
    }

    fn has(&self, part: Part) -> bool {
        self.parts.has(part)
    }

    /// Whether writeback through copies counts as writeback.
    fn counts_copies(&self) -> bool {
        matches!(self.form, Form::July | Form::Seed | Form::August | Form::September)
    }

    /// The device's share of a limit.
    fn share(view: &View, dirty: u64, device: &mut Device, shared: &Shared) -> u64 {
        let own = |knob| view.knobs.own.get(knob);
        let claimed = view.knobs.own_sums.get(KernelKnob::MinRatio).min(100);
        let fraction = shared.completions.fraction(&mut device.completions, shift_for(dirty));
        let shared_part = dirty * (100 - claimed) / 100;
        let min = dirty * own(KernelKnob::MinRatio) / 100;
        (fraction.of(shared_part) + min).min(dirty * own(KernelKnob::MaxRatio) / 100)
    }

    /// The headroom of all devices plus the device's own pages: four global reads and two of the device.
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
        if self.has(Part::Clip) {
            share = share.min(Self::headroom(view, limits.dirty));
        }
        if self.has(Part::TaskShare) { Self::share_of_task(share, limits.dirty, task, shared) } else { share }
    }

    /// Reads the device's counters.
    fn look_at_device(&self, view: &View, pass: &mut Pass) {
        if self.has(Part::DeviceTest) {
            pass.own_reclaimable = view.device_reclaimable();
            pass.own = pass.own_reclaimable + view.device_writeback();
        }
    }

    /// The reads of one pass, in the order of the form. The merged form stops early if no writer has to wait.
    fn look(&self, view: &View, task: &mut Task, device: &mut Device, shared: &Shared) -> Pass {
        let limits = Self::limits_now(view);
        let of_all = |share| {
            let reclaimable = view.read(Global::Dirty) + view.read(Global::Unstable);
            let total = reclaimable + view.read(Global::Writeback);
            Pass { limits, share, reclaimable, total, own_reclaimable: 0, own: 0 }
        };
        let mut pass;
        if self.form == Form::Merged {
            pass = of_all(0);
            if pass.below_midpoint() {
                return pass;
            }
            pass.share = self.shares(view, limits, task, device, shared);
        } else {
            pass = of_all(self.shares(view, limits, task, device, shared));
        }
        if self.counts_copies() {
            pass.total += view.read(Global::WritebackCopy);
        }
        self.look_at_device(view, &mut pass);
        pass
    }

    /// Whether the device has more than its share or, if the form tests this, all devices are at the limit.
    fn over(&self, pass: &Pass) -> bool {
        let over_share = pass.own > pass.share || self.has(Part::AtShare) && pass.own == pass.share;
        over_share || self.has(Part::LimitOfAll) && pass.total >= pass.limits.dirty
    }

    /// Whether a pass ends the call before it writes.
    fn leaves(&self, view: &View, pass: &Pass, pace: &Pace) -> bool {
        let held = self.has(Part::HoldsOverLimit) && pass.total >= pass.limits.dirty;
        let has_written = self.has(Part::RoundAfterWriting) && view.payer.call.written >= chunk_pages(pace) && !held;
        !self.over(pass) || pass.below_midpoint() || has_written
    }

    /// The way out: updates the flag, and requests background writeback.
    fn leave(&self, view: &View, pass: &Pass, in_test: bool, pace: &mut Pace) -> Admission {
        pace.old_kernel.dirty_exceeded &= match self.form {
            _ if self.has(Part::FlagStays) => !(in_test && pass.own <= pass.share),
            Form::September => self.over(pass),
            // Below the half-way mark no counter of the device was read, so the result of an earlier pass stands.
            Form::Merged if pass.below_midpoint() => view.payer.call.pass > 0,
            Form::Merged => self.over(pass),
            _ => pass.own >= pass.share,
        };
        if !(self.has(Part::QuietWhileFlushing) && view.device().flushing) {
            let reclaimable = match self.has(Part::TailReads) {
                true => view.read(Global::Dirty) + view.read(Global::Unstable),
                false => pass.reclaimable,
            };
            pace.old_kernel.start_background = reclaimable > pass.limits.background;
        }
        Admission::Enter
    }

    fn wait(&self, task: &mut Task) -> Admission {
        let (ticks, cause, woken_by) = if self.form == Form::V2_6_32 {
            let ticks = task.pause.clamp(1, WAIT_TICKS);
            task.pause = 2 * ticks;
            (ticks, PauseCause::DeviceShare, WokenBy::Time)
        } else {
            (WAIT_TICKS, PauseCause::Congestion, self.woken_by)
        };
        let pause = WriterPause { ns: TickRate::DEFAULT.ns(ticks), cause, woken_by, then: AfterPause::Decide };
        Admission::OldKernel(WriterDecision::Pause(pause))
    }

    /// The decision after the writer has written; `None` if the loop begins again at once.
    fn after_writing(&self, view: &View, pass: Pass, memory: &mut Memory<'_, Self>) -> Option<Admission> {
        let Memory { payer: task, device, shared, pace } = memory;
        let mut pass = pass;
        if self.has(Part::LookAfterWriting) {
            pass.limits = Self::limits_now(view);
            pass.share = self.shares(view, pass.limits, task, device, shared);
            self.look_at_device(view, &mut pass);
            if pass.own <= pass.share {
                return Some(self.leave(view, &pass, false, pace));
            }
        }
        let chunk = chunk_pages(pace);
        // August counts the pages written in this pass, the others those of the whole call.
        let written =
            if self.has(Part::HoldsOverLimit) { view.payer.call.written_last } else { view.payer.call.written };
        match written >= chunk {
            true if self.has(Part::RoundAfterWriting) => None,
            true => Some(self.leave(view, &pass, false, pace)),
            false => Some(self.wait(task)),
        }
    }
}

impl Balance {
    /// Counts completed writes of the device.
    fn wrote(&self, view: &View, pages: u64, device: &mut Device, shared: &mut Shared) {
        let limits = limits_2009(view.memory_pages, &view.knobs);
        let largest = floating::WHOLE * view.knobs.own.get(KernelKnob::MaxRatio) / 100;
        shared.completions.add(&mut device.completions, pages, largest, shift_for(limits.dirty));
    }
}

impl DevicePolicy for Balance {
    type Payer = Task;
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

    fn needs(&self) -> Needs {
        Needs { ignores: LACKING_UNTIL_2_6_32, ..NEEDS }
    }

    fn pause_ns_max(&self) -> u64 {
        TickRate::DEFAULT.ns(WAIT_TICKS)
    }

    fn start(&self, memory_pages: u64, cpus: u64) -> Pace {
        let cpu_pages = (memory_pages / (32 * cpus.max(1))).clamp(16, 1024);
        Pace { old_kernel: WriterPace { cpu_pages, ..WriterPace::NONE }, ..Pace::UNASKED }
    }

    fn room(&self, _: &View, _: &mut Device) -> Room {
        Room::UNLIMITED
    }

    fn admit(&self, view: &View, memory: Memory<'_, Self>) -> Admission {
        let Memory { payer: task, device, shared, pace } = memory;
        if view.payer.call.pass == 0 {
            (task.pause, task.wrote) = (1, None);
            let limits = limits_2009(view.memory_pages, &view.knobs);
            shared.dirties.add(&mut task.dirties, pace.unpaid_pages, floating::WHOLE, shift_for(limits.dirty));
            pace.unpaid_pages = 0;
        }
        let mut memory: Memory<'_, Self> = Memory { payer: task, device, shared, pace };
        if let Some(pass) = memory.payer.wrote.take()
            && let Some(decision) = self.after_writing(view, pass, &mut memory)
        {
            return decision;
        }
        let Memory { payer: task, device, shared, pace } = memory;
        let mut pass = self.look(view, task, device, shared);
        if self.leaves(view, &pass, pace) {
            return self.leave(view, &pass, true, pace);
        }
        pace.old_kernel.dirty_exceeded = self.has(Part::Flag);
        let enough = if self.form == Form::Rc1 { 0 } else { pass.share };
        if pass.own_reclaimable > enough {
            task.wrote = Some(pass);
            return Admission::OldKernel(WriterDecision::WriteBack { pages: chunk_pages(pace) });
        }
        if self.has(Part::RoundAfterWriting) {
            return self.wait(task);
        }
        if self.has(Part::LookAfterWriting) && pass.own_reclaimable > 0 {
            self.look_at_device(view, &mut pass);
        }
        if view.payer.call.written >= chunk_pages(pace) {
            return self.leave(view, &pass, false, pace);
        }
        self.wait(task)
    }

    fn completed(&self, view: &View, done: &Completed, device: &mut Device, shared: &mut Shared) {
        if done.pages > 0 {
            self.wrote(view, done.pages, device, shared);
        }
    }

    fn over_background(&self, view: &View, _device: &mut Device, _shared: &mut Shared) -> bool {
        let reclaimable = view.read(Global::Dirty) + view.read(Global::Unstable);
        reclaimable > 0 && reclaimable >= Self::limits_now(view).background
    }

    fn slice_bytes(&self, _view: &View, _device: &mut Device, _shared: &mut Shared) -> u64 {
        SLICE_PAGES * PAGE_BYTES
    }

    fn limits(&self, view: &View, device: &mut Device, shared: &mut Shared) -> LimitPages {
        let limits = Self::limits_now(view);
        let dirty = Self::share(view, limits.dirty, device, shared);
        LimitPages { dirty, background: limits.background, bandwidth: None }
    }
}

#[cfg(test)]
mod tests;
