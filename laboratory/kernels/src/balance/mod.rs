//! `balance_dirty_pages` of 2009, in which a writer over the limit writes back itself, in eight forms.
//!
//! The writers of a CPU go on until they have dirtied `ratelimit_pages` together: all memory / 32 / CPUs, between 16
//! and 1,024; or 8 once the device is flagged as over. Then one of them enters the loop.
//!
//! **Before seed S0** (`linux-2.6.31-rc1`, `linux-2.6.31`, `linux-2.6.32`), each pass
//! computes the limits of all devices from dirtyable memory, then the device's share of the limit. The share is the
//! device's fraction of recent completions, cut to the headroom of all devices plus the device's own dirty pages. A
//! writer that did all the dirtying lately has up to an eighth less. The writer leaves if the device has no more than
//! its share, or if all devices together have less than half-way between background and limit.
//!
//! Otherwise the device is flagged, and the writer writes 1.5 × `ratelimit_pages` of it. (In rc1 the writer writes if
//! the device has any dirty page. In later kernels the dirty pages must exceed the share.) The writer computes the
//! limits again. It leaves if the device is below its share or the chunk is written. Otherwise it waits up to 100 ms
//! for congestion to clear, and begins again. At its end the flag is cleared if the device is below its share.
//! Background writeback is requested if the dirty counters, read once more, exceed the threshold. 2.6.32 sleeps 1 ms,
//! doubling to 100, instead of waiting for congestion (from memory).
//!
//! **The reordering of seed S0** has no clip to the headroom and one copy of the tests. It counts writeback through
//! copies, and decides about background from the counts that it has read. No archive has the first diff; where the
//! thread does not describe it, it is assumed to equal the next. August and September are as posted on 21 August and 4
//! September 2009:
//! - `s0-july`: clears the flag only if the device has no more than its share, not on the other exits.
//! - `s0-seed`: as July, but clears the flag on every exit below the share.
//! - `s0-august`: as the seed, but at or above the limit of all devices no writer leaves, neither below the share nor
//!   after a chunk. A writer that has written a chunk begins the loop again at once.
//! - `s0-september`: a writer is over if the device is at its share or more, or all devices are at the limit or more.
//!   It leaves when not over, below the half-way mark, or when the chunk is written.
//! - `s0-merged` (in 2.6.36): reads the dirty counters first, and leaves below the half-way mark before it reads a
//!   counter of the device. Its test for over is September's. The call ends with the chunk.
//!
//! In the first pass, August's and September's code tests the device's dirty count before it has assigned it. Here the
//! counters are always read. If the variable happens to hold 0, the result is the law without [`Part::DeviceTest`].
//! Not modelled: real-time and "less throttled" writers. A writer is an open file.
//!
//! Owns: the decisions of a call. Does not own: the writing (`fs_writeback`), the call itself (`writer`).
//! Invariants: the number of reads of counters on each path is exactly the one in the tables.

mod parts;

use crate::proportions::{self as prop, Global, Local, shift_for};
use crate::sysctl::{HZ, JIFFY_NS, Limits, Sysctl, limits};
use crate::vmstat::{Item, View};

pub(crate) use parts::Form;
pub use parts::Part;
use parts::Parts;

/// Ticks of the longest wait between passes.
const WAIT_JIFFIES: u64 = HZ / 10;
/// Pages between calls once the device is over its share.
const EXCEEDED_PAGES: u64 = 8;

/// The law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    form: Form,
    parts: Parts,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The writer goes on.
    Return,
    /// The writer writes back so many pages of the device, then asks again.
    WriteBack(u64),
    /// The writer waits until congestion clears, at most so many nanoseconds, then asks again.
    CongestionWait(u64),
    /// The writer sleeps, then asks again.
    Sleep(u64),
}

/// The progress of a writer's call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    /// The number of this pass in the call, from 0.
    pub(crate) pass: u32,
    /// Pages that the writer wrote back in this call.
    pub(crate) written: u64,
    /// Pages written back after the last [`Step::WriteBack`].
    pub(crate) written_last: u64,
    /// Set between a pass that wrote and the decision after it.
    wrote: Option<Pass>,
    /// Ticks of the last sleep, in 2.6.32.
    slept: u64,
}

/// The counts by which fractions are known: all completions and all dirtying, the device's and the writer's part.
pub(crate) struct Fractions<'a> {
    pub(crate) vm_completions: &'a Global,
    pub(crate) vm_dirties: &'a Global,
    pub(crate) completions: &'a mut Local,
    pub(crate) dirties: &'a mut Local,
}

/// The marks that a decision may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The device is over its share: its writers call after 8 pages.
    pub(crate) dirty_exceeded: bool,
    /// Background writeback has to start.
    pub(crate) start_background: bool,
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
        self.total < self.limits.midpoint()
    }
}

/// Pages that the writers of a CPU may dirty between calls (`ratelimit_pages`).
pub(crate) fn ratelimit_pages(memory_pages: u64, cpus: u64, dirty_exceeded: bool) -> u64 {
    if dirty_exceeded { EXCEEDED_PAGES } else { (memory_pages / (32 * cpus.max(1))).clamp(16, 1024) }
}

impl Balance {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, parts: Parts::of(form) }
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
    fn share(view: &View, dirty: u64, of: &mut Fractions<'_>) -> u64 {
        let fraction = of.vm_completions.fraction(of.completions, shift_for(dirty));
        fraction.of(dirty).min(dirty * view.sysctl.max_ratio / 100)
    }

    /// The headroom of all devices plus the device's own pages: four global reads and two of the device.
    fn headroom(view: &View, dirty: u64) -> u64 {
        let used = view.global_page_state(Item::FileDirty)
            + view.global_page_state(Item::Writeback)
            + view.global_page_state(Item::UnstableNfs)
            + view.global_page_state(Item::WritebackTemp);
        dirty.saturating_sub(used) + view.bdi_reclaimable() + view.bdi_writeback()
    }

    /// The share of a writer that did some of the recent dirtying.
    fn share_of_task(share: u64, dirty: u64, of: &mut Fractions<'_>) -> u64 {
        let fraction = of.vm_dirties.fraction(of.dirties, shift_for(dirty));
        share.saturating_sub(fraction.of(share >> 3)).max(share / 2)
    }

    fn limits_now(view: &View) -> Limits {
        limits(view.dirtyable(), &view.sysctl)
    }

    fn shares(&self, view: &View, limits: Limits, of: &mut Fractions<'_>) -> u64 {
        let mut share = Self::share(view, limits.dirty, of);
        if self.has(Part::Clip) {
            share = share.min(Self::headroom(view, limits.dirty));
        }
        if self.has(Part::TaskShare) { Self::share_of_task(share, limits.dirty, of) } else { share }
    }

    /// Reads the device's counters.
    fn look_at_device(&self, view: &View, pass: &mut Pass) {
        if self.has(Part::DeviceTest) {
            pass.own_reclaimable = view.bdi_reclaimable();
            pass.own = pass.own_reclaimable + view.bdi_writeback();
        }
    }

    /// The reads of one pass, in the order of the form. The merged form stops early if no writer has to wait.
    fn look(&self, view: &View, of: &mut Fractions<'_>) -> Pass {
        let limits = Self::limits_now(view);
        let of_all = |share| {
            let reclaimable = view.global_page_state(Item::FileDirty) + view.global_page_state(Item::UnstableNfs);
            let total = reclaimable + view.global_page_state(Item::Writeback);
            Pass { limits, share, reclaimable, total, own_reclaimable: 0, own: 0 }
        };
        let mut pass;
        if self.form == Form::Merged {
            pass = of_all(0);
            if pass.below_midpoint() {
                return pass;
            }
            pass.share = self.shares(view, limits, of);
        } else {
            pass = of_all(self.shares(view, limits, of));
        }
        if self.counts_copies() {
            pass.total += view.global_page_state(Item::WritebackTemp);
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
    fn leaves(&self, pass: &Pass, call: &Call, chunk: u64) -> bool {
        let held = self.has(Part::HoldsOverLimit) && pass.total >= pass.limits.dirty;
        let has_written = self.has(Part::RoundAfterWriting) && call.written >= chunk && !held;
        !self.over(pass) || pass.below_midpoint() || has_written
    }

    /// The end of a call: updates the flag, and requests background writeback.
    fn leave(&self, view: &View, pass: &Pass, in_test: bool, call: &Call, marks: &mut Marks) -> Step {
        marks.dirty_exceeded &= match self.form {
            _ if self.has(Part::FlagStays) => !(in_test && pass.own <= pass.share),
            Form::September => self.over(pass),
            // Below the half-way mark no counter of the device was read, so the result of an earlier pass stands.
            Form::Merged if pass.below_midpoint() => call.pass > 0,
            Form::Merged => self.over(pass),
            _ => pass.own >= pass.share,
        };
        if !(self.has(Part::QuietWhileFlushing) && view.writeback_in_progress) {
            let reclaimable = match self.has(Part::TailReads) {
                true => view.global_page_state(Item::FileDirty) + view.global_page_state(Item::UnstableNfs),
                false => pass.reclaimable,
            };
            marks.start_background = reclaimable > pass.limits.background;
        }
        Step::Return
    }

    fn wait(&self, call: &mut Call) -> Step {
        if self.form != Form::V2_6_32 {
            return Step::CongestionWait(WAIT_JIFFIES * JIFFY_NS);
        }
        call.slept = (2 * call.slept).clamp(1, WAIT_JIFFIES);
        Step::Sleep(call.slept * JIFFY_NS)
    }

    /// The decision after the writer has written; `None` if the loop begins again at once.
    fn after_writing(
        &self,
        view: &View,
        mut pass: Pass,
        chunk: u64,
        call: &mut Call,
        marks: &mut Marks,
        of: &mut Fractions<'_>,
    ) -> Option<Step> {
        if self.has(Part::LookAfterWriting) {
            pass.limits = Self::limits_now(view);
            pass.share = self.shares(view, pass.limits, of);
            self.look_at_device(view, &mut pass);
            if pass.own <= pass.share {
                return Some(self.leave(view, &pass, false, call, marks));
            }
        }
        // August counts the pages written in this pass, the others those of the whole call.
        let written = if self.has(Part::HoldsOverLimit) { call.written_last } else { call.written };
        match written >= chunk {
            true if self.has(Part::RoundAfterWriting) => None,
            true => Some(self.leave(view, &pass, false, call, marks)),
            false => Some(self.wait(call)),
        }
    }

    /// The next step of a call. `ratelimit` is the number of pages of a CPU's writers between calls without the flag.
    pub(crate) fn step(
        &self,
        view: &View,
        ratelimit: u64,
        call: &mut Call,
        marks: &mut Marks,
        of: &mut Fractions<'_>,
    ) -> Step {
        let chunk = ratelimit + ratelimit / 2;
        if let Some(pass) = call.wrote.take()
            && let Some(step) = self.after_writing(view, pass, chunk, &mut *call, &mut *marks, of)
        {
            return step;
        }
        let mut pass = self.look(view, of);
        if self.leaves(&pass, call, chunk) {
            return self.leave(view, &pass, true, call, marks);
        }
        marks.dirty_exceeded = self.has(Part::Flag);
        let enough = if self.has(Part::ShareTest) { pass.share } else { 0 };
        if pass.own_reclaimable > enough {
            call.wrote = Some(pass);
            return Step::WriteBack(chunk);
        }
        if self.has(Part::RoundAfterWriting) {
            return self.wait(call);
        }
        if self.has(Part::LookAfterWriting) && pass.own_reclaimable > 0 {
            self.look_at_device(view, &mut pass);
        }
        if call.written >= chunk {
            return self.leave(view, &pass, false, call, marks);
        }
        self.wait(call)
    }

    /// Whether background writeback goes on (`over_bground_thresh`).
    pub(crate) fn over_background(view: &View) -> bool {
        let background = Self::limits_now(view).background;
        view.global_page_state(Item::FileDirty) + view.global_page_state(Item::UnstableNfs) >= background
    }
}

/// The period of the fractions, as a power of two: of all memory's limit.
pub(crate) fn period_shift(memory_pages: u64, sysctl: &Sysctl) -> u32 {
    shift_for(limits(memory_pages, sysctl).dirty)
}

/// The largest fraction of completions that a device may have, in parts of [`prop::WHOLE`].
pub(crate) fn largest_fraction(sysctl: &Sysctl) -> u64 {
    prop::WHOLE * sysctl.max_ratio / 100
}

#[cfg(test)]
mod tests;
