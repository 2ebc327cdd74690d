//! A zone of memory: buddy lists under one lock, per-CPU lists of single frames in front of them (`struct zone`).
//!
//! Seed S2 compares forms of the per-CPU lists, and seed S3's reclaim frees into the form of 2.6.39. All forms share
//! this source and differ only in `form`.
//!
//! Owns: taking and freeing frames. Does not own: reclaim and the tries of an allocation (`mm`), loops (`experiments`).
//! Invariants: a frame is either free or handed out, never both. The lock of a CPU's lists is taken before the zone's,
//! and of one CPU at a time. It stands for the kernel's disabled interrupts: a measurement never waits for it.

mod block;
mod buddy;
mod drift;
mod form;
mod mem_map;
mod per_cpu_pages;
mod watermarks;

#[cfg(test)]
mod tests;

use afflux_frames::{SpinGuard, SpinLock, Watermarks};

pub use block::{MAX_ORDER, Mobility, Temperature};
use buddy::Buddy;
use drift::DriftingCount;
pub(crate) use drift::drift_threshold;
pub use form::{BatchedDrain, Drain, EmptyFirstDrain, Form, ListPerClass, ShortcutDrain, SingleList, ZoneTunables};
use mem_map::{BlockState, MemMap, NIL, Tag};
pub use per_cpu_pages::{Counters, drained};
use per_cpu_pages::{PerCpuPages, Tunables};
pub(crate) use watermarks::linux_2009;
use watermarks::{batch_2009, high_2009};

/// Most frames that are brought in at a time.
const BATCH_MAX: usize = 31;

/// A zone, with per-CPU lists of the form `F`.
pub struct Zone<F> {
    map: MemMap,
    watermarks: Watermarks,
    tunables: Tunables,
    cpus: Box<[SpinLock<PerCpuPages<F>>]>,
    free: SpinLock<Buddy>,
    /// The free frames as tasks see them.
    seen: DriftingCount,
}

impl<F: Form> Zone<F> {
    /// A machine's only zone, with `frames` free ones and lists for `cpus`.
    pub fn new(frames: u32, cpus: usize) -> Self {
        Self::with(frames, cpus, linux_2009(frames.into(), frames.into()), 0)
    }

    /// The same with these marks, where each CPU adds its changes to the free count only once they pass
    /// `drift_frames`.
    pub(crate) fn with(frames: u32, cpus: usize, watermarks: Watermarks, drift_frames: u32) -> Self {
        assert!(frames < NIL, "a zone of {frames} frames: the links have room for {NIL}");
        let batch = batch_2009(frames.into()).max(1);
        let tunables = Tunables { high: high_2009(batch), batch };
        let map = MemMap::new(frames);
        Self {
            watermarks,
            tunables,
            cpus: (0..cpus).map(|_| SpinLock::new(PerCpuPages::new(tunables))).collect(),
            free: SpinLock::new(Buddy::new(&map)),
            seen: DriftingCount::new(frames, cpus, drift_frames),
            map,
        }
    }

    /// Takes a block as this CPU, if more than `mark` frames are free as tasks see it (`buffered_rmqueue`). Empty lists
    /// are refilled with a whole batch, even if that leaves less than `mark`.
    pub fn take(&self, cpu: usize, order: u8, class: Mobility, mark: u32, end: Temperature) -> Option<u32> {
        // Not modelled: the kernel wants a part of the mark in blocks of at least this order.
        if self.seen_free() < mark.saturating_add(1 << order) {
            return None;
        }
        if order > 0 {
            return self.with_lock(cpu, |buddy| buddy.take(&self.map, order, class));
        }
        let mut lists = self.cpus[cpu].lock();
        let frame = lists.take(&self.map, class, end).or_else(|| {
            self.rmqueue_bulk(cpu, &mut lists, class);
            lists.take(&self.map, class, end)
        })?;
        self.map.set_tag(frame, Tag::new(BlockState::Used, 0, class));
        Some(frame)
    }

    /// Gives a block back as this CPU (`free_hot_cold_page`).
    ///
    /// # Panics
    /// If nobody holds this block.
    pub fn free(&self, cpu: usize, first: u32, order: u8, end: Temperature) {
        let tag = self.map.tag(first);
        assert!(
            tag.state == BlockState::Used && tag.order == order,
            "a free of order {order} at {first}, which is {tag:?}"
        );
        if order > 0 {
            return self.with_lock(cpu, |buddy| buddy.give(&self.map, first, order));
        }
        let class = self.map.pageblock_class(first);
        let mut lists = self.cpus[cpu].lock();
        lists.put(&self.map, first, class, end);
        let tunables = self.tunables_of(&lists);
        if lists.count >= tunables.high {
            let count = lists.bulk(tunables);
            self.free_pcppages_bulk(cpu, &mut lists, count, class);
        }
    }

    /// Gives the frames of all CPUs' lists back to the buddy lists (`drain_all_pages`, without its interrupts).
    pub fn drain_all(&self) {
        for (cpu, lists) in self.cpus.iter().enumerate() {
            let mut lists = lists.lock();
            let all = lists.count;
            if all > 0 {
                self.free_pcppages_bulk(cpu, &mut lists, all, Mobility::Unmovable);
            }
        }
    }

    /// A count, summed over all CPUs' lists.
    pub fn counted(&self, of: impl Fn(&Counters) -> u64) -> u64 {
        self.cpus.iter().map(|lists| of(&lists.lock().counters)).sum()
    }

    /// The number of free frames, those in per-CPU lists too.
    pub fn free_count(&self) -> u32 {
        self.cpus.iter().map(|lists| lists.lock().count).sum::<u32>() + self.buddy_frames()
    }

    /// The marks on free frames.
    pub fn watermarks(&self) -> Watermarks {
        self.watermarks
    }

    /// Frames in the buddy lists, without those in per-CPU lists: `NR_FREE_PAGES`.
    pub fn buddy_frames(&self) -> u32 {
        self.free.lock().free_frames()
    }

    /// The same as tasks of the kernel see it: without the CPUs' pending changes.
    pub fn seen_free(&self) -> u32 {
        self.seen.seen()
    }

    fn tunables_of(&self, lists: &SpinGuard<'_, PerCpuPages<F>>) -> Tunables {
        if F::TUNABLES_IN_ZONE { self.tunables } else { lists.tunables }
    }

    fn with_lock<R>(&self, cpu: usize, body: impl FnOnce(&mut Buddy) -> R) -> R {
        let mut buddy = self.free.lock();
        let before = i64::from(buddy.free_frames());
        let result = body(&mut buddy);
        self.seen.add(cpu, i64::from(buddy.free_frames()) - before);
        result
    }

    fn rmqueue_bulk(&self, cpu: usize, lists: &mut SpinGuard<'_, PerCpuPages<F>>, class: Mobility) {
        let Tunables { batch, .. } = self.tunables_of(lists);
        let (mut frames, mut count) = ([0; BATCH_MAX], 0);
        self.with_lock(cpu, |buddy| {
            while count < batch as usize {
                let Some(frame) = buddy.take(&self.map, 0, class) else { break };
                frames[count] = frame;
                count += 1;
            }
        });
        if count > 0 {
            lists.refill(&self.map, class, &frames[..count]);
        }
    }

    fn free_pcppages_bulk(&self, cpu: usize, lists: &mut PerCpuPages<F>, count: u32, last: Mobility) {
        self.with_lock(cpu, |buddy| {
            lists.drain(&self.map, count, last, |frame| buddy.give(&self.map, frame, 0));
        });
    }
}
