//! The page allocator of Linux before seed S2's series, and after each of its three steps.
//!
//! Owns: a zone: buddy lists under one lock, per-CPU lists of single frames in front of them.
//! Does not own: the differences of the forms (`form`), the memory (the arena), reclaim.
//! Invariants: the lock of a CPU's lists is taken before the zone's, and of one CPU at a time. All forms share this
//! source and differ only in `form`.
//!
//! A CPU's lock stands for the kernel's disabled interrupts: S2's measurements never wait for it. A double free is
//! found unless two threads make it at the same moment; the product's frames find that case, too.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};

use afflux_frames::{Effort, SpinGuard, SpinLock, Watermarks};

use crate::bad_free::{Event, Fault};
use crate::buddy::{Buddy, Ground, Pageblocks};
use crate::counters::{Counters, ZoneCounters};
use crate::drift::DriftingCount;
use crate::form::Form;
use crate::lists::{CpuLists, Tunables};
use crate::table::{self, End, FrameTable, Place, Tag};
use crate::watermarks::{batch_2009, high_2009, linux_2009};
use crate::{Allocator, BadFree, Mobility, Order, slot};

/// Most frames brought in at a time, even if the tunables allow more.
const REFILL_MAX: usize = 256;

/// Whether the frame's contents are still in this CPU's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temperature {
    /// They are: take and give at the head.
    Hot,
    /// They are not, or it does not matter: take and give at the tail.
    Cold,
}

impl Temperature {
    fn end(self) -> End {
        match self {
            Self::Hot => End::Head,
            Self::Cold => End::Tail,
        }
    }
}

struct Free {
    buddy: Buddy,
    counters: ZoneCounters,
}

/// Frames kept as Linux keeps a zone, with per-CPU lists of the form `F`.
pub struct Zone<F> {
    table: FrameTable,
    pageblocks: Pageblocks,
    watermarks: Watermarks,
    tunables: Tunables,
    cpus: Box<[SpinLock<CpuLists<F>>]>,
    free: SpinLock<Free>,
    /// The free frames in the buddy lists, readable without the lock.
    free_frames: AtomicU32,
    /// The same number as tasks of the kernel see it.
    seen: DriftingCount,
}

impl<F: Form> Zone<F> {
    /// `frames` free ones, with lists for as many CPUs as threads can have.
    pub fn new(frames: u32) -> Self {
        Self::with(frames, slot::SLOTS, None, None)
    }

    /// `frames` free ones, lists for `cpus`; by default the tunables and watermarks of 2009.
    pub fn with(frames: u32, cpus: usize, tunables: Option<Tunables>, watermarks: Option<Watermarks>) -> Self {
        assert!(frames < table::NIL, "a zone of {frames} frames: the links have room for {}", table::NIL);
        let batch = batch_2009(frames.into()).max(1);
        let tunables = tunables.unwrap_or(Tunables { high: high_2009(batch), batch });
        let tunables = Tunables { high: tunables.high.max(1), batch: tunables.batch.clamp(1, REFILL_MAX as u32) };
        let (table, pageblocks) = (FrameTable::new(frames), Pageblocks::new(frames));
        let buddy = Buddy::new(Ground { table: &table, pageblocks: &pageblocks });
        Self {
            table,
            pageblocks,
            watermarks: watermarks.unwrap_or_else(|| linux_2009(frames.into(), frames.into())),
            tunables,
            cpus: (0..cpus.max(1)).map(|_| SpinLock::new(CpuLists::new(tunables))).collect(),
            free: SpinLock::new(Free { buddy, counters: ZoneCounters::default() }),
            free_frames: AtomicU32::new(frames),
            seen: DriftingCount::new(frames, cpus.max(1), 0),
        }
    }

    /// The same with a drifting free count: each CPU adds its changes only when they pass `threshold`
    /// ([`drift_threshold`](crate::drift_threshold) is the kernel's).
    #[must_use]
    pub fn with_drift(mut self, threshold: u32) -> Self {
        self.seen = DriftingCount::new(self.buddy_frames(), self.cpus.len(), threshold);
        self
    }

    /// Takes a block as this CPU. Fails if fewer frames than the effort's mark would be left, or if nothing fits; never
    /// waits.
    pub fn allocate_on(
        &self,
        cpu: usize,
        order: Order,
        class: Mobility,
        effort: Effort,
        temperature: Temperature,
    ) -> Option<u32> {
        let mark = self.watermarks.floor(effort);
        if order != Order::SINGLE {
            return self.with_zone(cpu, |free, ground| {
                let spare = free.buddy.free_frames().checked_sub(order.frames())?;
                let allowed = spare >= mark;
                allowed.then(|| free.buddy.take(ground, order.get(), class, &mut free.counters))?
            });
        }
        if mark > 0 && self.free_frames.load(Ordering::Relaxed) <= mark {
            return None;
        }
        let mut lists = self.cpu(cpu);
        let end = temperature.end();
        let frame = lists.take(&self.table, class, end).or_else(|| {
            self.refill(cpu, &mut lists, class, mark);
            lists.take(&self.table, class, end)
        })?;
        self.table.set_tag(frame, Tag::new(Place::Used, 0, class));
        Some(frame)
    }

    /// Takes a frame as this CPU in the kernel's way. If the count as tasks see it is above `mark`, it takes a frame
    /// from this CPU's lists. Empty lists are first refilled with a whole batch, even if that leaves less than `mark`.
    pub fn take_above(&self, cpu: usize, mark: u32, class: Mobility, temperature: Temperature) -> Option<u32> {
        if self.seen_free() <= mark {
            return None;
        }
        let mut lists = self.cpu(cpu);
        let end = temperature.end();
        let frame = lists.take(&self.table, class, end).or_else(|| {
            self.refill(cpu, &mut lists, class, 0);
            lists.take(&self.table, class, end)
        })?;
        self.table.set_tag(frame, Tag::new(Place::Used, 0, class));
        Some(frame)
    }

    /// Gives a block back as this CPU.
    pub fn free_on(&self, cpu: usize, first: u32, order: Order, temperature: Temperature) -> Result<(), BadFree> {
        self.check_free(first, order)?;
        if order != Order::SINGLE {
            self.with_zone(cpu, |free, ground| free.buddy.give(ground, first, order.get(), &mut free.counters));
            return Ok(());
        }
        let class = self.pageblocks.class(first);
        let mut lists = self.cpu(cpu);
        lists.put(&self.table, first, class, temperature.end());
        let Tunables { high, batch } = if F::TUNABLES_IN_ZONE { self.tunables } else { lists.tunables };
        if lists.count() >= high {
            self.drain(cpu, &mut lists, batch, class);
        }
        Ok(())
    }

    /// Gives the frames of all CPUs' lists back to the buddy lists.
    pub fn drain_all(&self) {
        for cpu in 0..self.cpus.len() {
            let mut lists = self.cpu(cpu);
            let all = lists.count();
            if all > 0 {
                self.drain(cpu, &mut lists, all, Mobility::Unmovable);
            }
        }
    }

    /// The counts since the start.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        for cpu in 0..self.cpus.len() {
            counters.lists.add(&self.cpu(cpu).counters);
        }
        counters.zone = self.free.lock().counters;
        counters
    }

    /// The number of frames that move at a time, and the number at which they do.
    pub fn tunables(&self) -> Tunables {
        self.tunables
    }

    /// The number of blocks in the buddy lists of this order, by class.
    pub fn blocks(&self, order: Order) -> [u32; Mobility::COUNT] {
        self.free.lock().buddy.blocks(order.get())
    }

    /// The number of free frames, those in per-CPU lists too.
    pub fn free_count(&self) -> u32 {
        let listed: u32 = (0..self.cpus.len()).map(|cpu| self.cpu(cpu).count()).sum();
        listed + self.buddy_frames()
    }

    /// The watermarks that bound each effort.
    pub fn watermarks(&self) -> Watermarks {
        self.watermarks
    }

    /// Frames in the buddy lists, without those in per-CPU lists.
    pub fn buddy_frames(&self) -> u32 {
        self.free_frames.load(Ordering::Relaxed)
    }

    /// Frames in the buddy lists as tasks of the kernel see it: without the CPUs' pending changes.
    pub fn seen_free(&self) -> u32 {
        self.seen.seen()
    }

    fn cpu(&self, cpu: usize) -> SpinGuard<'_, CpuLists<F>> {
        self.cpus[cpu % self.cpus.len()].lock()
    }

    fn with_zone<R>(&self, cpu: usize, body: impl FnOnce(&mut Free, Ground<'_>) -> R) -> R {
        let mut free = self.free.lock();
        free.counters.lock_acquisitions += 1;
        let before = free.buddy.free_frames();
        let result = body(&mut free, Ground { table: &self.table, pageblocks: &self.pageblocks });
        let after = free.buddy.free_frames();
        self.free_frames.store(after, Ordering::Relaxed);
        self.seen.add(cpu, i64::from(after) - i64::from(before));
        result
    }

    fn refill(&self, cpu: usize, lists: &mut CpuLists<F>, class: Mobility, mark: u32) {
        let Tunables { batch, .. } = if F::TUNABLES_IN_ZONE { self.tunables } else { lists.tunables };
        let mut frames = [0; REFILL_MAX];
        let mut count = 0;
        self.with_zone(cpu, |free, ground| {
            while count < batch as usize && free.buddy.free_frames() > mark {
                let Some(frame) = free.buddy.take(ground, 0, class, &mut free.counters) else { break };
                frames[count] = frame;
                count += 1;
            }
        });
        if count > 0 {
            lists.refill(&self.table, class, &frames[..count]);
        }
    }

    fn drain(&self, cpu: usize, lists: &mut CpuLists<F>, count: u32, last: Mobility) {
        self.with_zone(cpu, |free, ground| {
            lists.drain(&self.table, count, last, |frame| free.buddy.give(ground, frame, 0, &mut free.counters));
        });
    }

    fn check_free(&self, first: u32, order: Order) -> Result<(), BadFree> {
        let bad = |fault, last| BadFree { frame: first, order: order.get(), fault, last };
        let total = self.table.len();
        if first.checked_add(order.frames()).is_none_or(|end| end > total) {
            return Err(bad(Fault::Foreign { total }, None));
        }
        let tag = self.table.tag(first);
        if tag.place != Place::Used {
            let last = (tag.place != Place::Inside).then_some(Event::Freed);
            return Err(bad(Fault::NotAllocated, last));
        }
        if tag.order != order.get() {
            let last = Event::Allocated { order: tag.order };
            return Err(bad(Fault::OtherOrder { allocated: tag.order }, Some(last)));
        }
        Ok(())
    }
}

impl<F: Form> Allocator for Zone<F> {
    #[inline]
    fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<u32> {
        let cpu = slot::own();
        let first = self.allocate_on(cpu, order, mobility, effort, Temperature::Hot);
        if first.is_none() {
            // The kernel's direct reclaim does the same before it gives up, also for efforts that may not retry.
            self.drain_all();
            return self.allocate_on(cpu, order, mobility, effort, Temperature::Hot);
        }
        first
    }

    #[inline]
    fn free(&self, first: u32, order: Order) -> Result<(), BadFree> {
        self.free_on(slot::own(), first, order, Temperature::Hot)
    }
}
