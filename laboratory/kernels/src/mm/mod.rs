//! The memory of Linux 2.6.39: zone, lists, direct reclaim and kswapd, under programs that read files.
//!
//! An allocation takes a frame if more than the low mark is free. Otherwise it wakes kswapd, and takes frames down to
//! the min mark. Below that it reclaims itself, and tries again (`page_alloc`). A reclaim scans the lists by priority,
//! from 1/4096 of each in a first pass to all of it in a thirteenth (`vmscan`). The forms of seed S3 differ in when it
//! ends (`form`).
//!
//! Owns: the machine's memory, its boot, its counts.
//! Does not own: buddy and per-CPU lists (`zone`); dirty limits and writeback, which are the older kernels'.
//! Invariants: CPU time is charged to the task that uses it. A task can lose its CPU within each batch of a scan.

mod event;
mod filemap;
mod form;
mod lru;
mod page_alloc;
mod vmscan;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use afflux_engine::Platform;
use afflux_frames::Watermarks;
use afflux_simulator::{Random, SimPlatform};

pub use event::Event;
pub use filemap::Reader;
pub use form::{FORMS, Form, Target, form};
pub use lru::Held;
use lru::{Lru, Owner};

use crate::sysctl::PAGE_BYTES;
use crate::wait::{WaitQueue, lock};
use crate::zone::{Mobility, ShortcutDrain, Temperature, Zone, drift_threshold, linux_2009};

/// Nanoseconds of CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// Of one allocation.
    pub allocate_ns: u64,
    /// Of a hole's page: zeroing it, adding it to the file and the list.
    pub add_ns: u64,
    /// Of copying a page to its reader.
    pub copy_ns: u64,
    /// Of scanning and freeing a page.
    pub reclaim_ns: u64,
    /// Of a pass over the zones, with a call of the other caches.
    pub pass_ns: u64,
}

/// The machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryOptions {
    /// All memory.
    pub memory_bytes: u64,
    /// Frames that can hold pages; the kernel and programs have the others.
    pub page_frames: u32,
    /// CPUs.
    pub cpus: usize,
    /// Most frames by which each CPU's part of the free count lags; `None` for the kernel's formula.
    pub drift_frames: Option<u32>,
    /// Files that are read.
    pub files: usize,
    /// Objects in the kernel's other caches.
    pub cached_objects: u64,
    /// Costs.
    pub costs: Costs,
    /// The form of direct reclaim.
    pub form: Form,
    /// Whether kswapd goes ahead of all other tasks, which no kernel does.
    pub kswapd_ahead: bool,
}

/// A task's direct reclaim: the task, and nanoseconds from its begin to its end, waits for a CPU included.
pub type Delay = (u32, u64);

/// The memory of a running machine.
pub struct Memory {
    platform: Arc<SimPlatform>,
    options: MemoryOptions,
    zone: Zone<ShortcutDrain>,
    drift_frames: u32,
    lru: Mutex<Lru>,
    events: [AtomicU64; Event::ALL.len()],
    interrupts: Vec<AtomicU64>,
    /// Scans that the caches still owe, in fractions of an object.
    objects_due: AtomicU64,
    kswapd_wait: WaitQueue,
    delays: Mutex<Vec<Delay>>,
}

impl Memory {
    /// Boots the machine, and starts kswapd.
    pub fn boot(platform: &Arc<SimPlatform>, options: MemoryOptions) -> Arc<Self> {
        let all = (options.memory_bytes / PAGE_BYTES).min(u32::MAX.into());
        let drift_frames = options.drift_frames.unwrap_or_else(|| drift_threshold(options.cpus as u32, all as u32));
        let memory = Arc::new(Self {
            platform: Arc::clone(platform),
            zone: Zone::with(options.page_frames, options.cpus, linux_2009(all, all), drift_frames),
            drift_frames,
            lru: Mutex::new(Lru::new(options.page_frames, options.files)),
            events: Default::default(),
            interrupts: (0..options.cpus).map(|_| AtomicU64::new(0)).collect(),
            objects_due: AtomicU64::new(0),
            kswapd_wait: WaitQueue::default(),
            delays: Mutex::default(),
            options,
        });
        let kswapd = Arc::clone(&memory);
        let run = async move { kswapd.kswapd().await };
        match options.kswapd_ahead {
            true => platform.spawn_ahead("kswapd", run),
            false => platform.spawn("kswapd", run),
        }
        memory
    }

    /// Fills memory up to the high mark, in an even mix: so many pages that are dirty and so many that are mapped,
    /// which no scan can free, and else clean ones that nobody reads any more. The same seed gives the same order.
    pub fn fill(&self, dirty: u32, mapped: u32, seed: u64) {
        let all = self.options.page_frames.saturating_sub(self.watermarks().high);
        let of = |held, pages: u32| std::iter::repeat_n(Some(held), pages as usize);
        let mut kinds: Vec<Option<Held>> = of(Held::Dirty, dirty).chain(of(Held::Mapped, mapped)).collect();
        kinds.resize(kinds.len().max(all as usize), None);
        let mut random = Random::new(seed);
        for at in (1..kinds.len()).rev() {
            kinds.swap(at, random.below(at as u64 + 1) as usize);
        }
        for kind in kinds {
            let Some(frame) = self.take(0, 0) else { return };
            match kind {
                Some(held) => self.lru().add_held(frame, held),
                None => self.lru().add_unread(frame),
            }
        }
    }

    /// The marks on free frames.
    pub fn watermarks(&self) -> Watermarks {
        self.zone.watermarks()
    }

    /// The threshold of the free count's parts.
    pub fn drift_frames(&self) -> u32 {
        self.drift_frames
    }

    /// Events so far.
    pub fn counted(&self, event: Event) -> u64 {
        self.events[event as usize].load(Ordering::Relaxed)
    }

    /// Function-call interrupts of each CPU so far.
    pub fn interrupts(&self) -> Vec<u64> {
        self.interrupts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Takes the direct reclaims so far.
    pub fn take_delays(&self) -> Vec<Delay> {
        std::mem::take(&mut *lock(&self.delays))
    }

    /// Takes a frame for a page as this CPU, if more than `mark` are free.
    fn take(&self, cpu: usize, mark: u32) -> Option<u32> {
        self.zone.take(cpu, 0, Mobility::Movable, mark, Temperature::Cold)
    }

    fn lru(&self) -> MutexGuard<'_, Lru> {
        lock(&self.lru)
    }

    fn count(&self, event: Event, by: u64) {
        self.events[event as usize].fetch_add(by, Ordering::Relaxed);
    }

    async fn sleep(&self, ns: u64) {
        self.platform.sleep_until(self.platform.now().after(ns)).await;
    }

    async fn cond_resched(&self) {
        self.platform.preemption_point().await;
    }
}
