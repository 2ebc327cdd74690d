//! A simulated kernel of 2011 that reads sparse files. It has real buddy lists and per-CPU lists, two lists of pages
//! with the policy's loops over them, and virtual CPUs with a run queue.
//!
//! Owns: the mechanisms below `afflux_linux_policies::reclaim`, their costs, their counts.
//! Does not own: the order of scans and the reaction to a failure (`afflux_linux_policies::reclaim`), free frames
//! (`afflux_kernel_frames`), CPUs (`simulator`), the tasks (`tasks`), the pages (`lists`).
//! Invariants: CPU time is charged to the task that uses it, and a task can lose its CPU within each batch of a scan.

mod lists;
mod run;
mod tasks;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_frames::Watermarks;
use afflux_kernel_frames::watermarks::linux_2009;
use afflux_kernel_frames::{Mobility, Order, ShortcutDrain, Temperature, Zone};
use afflux_linux_policies::reclaim::{Event, List, Mechanisms, Scanned, Scanner, Sizes};
use afflux_simulator::SimPlatform;

use lists::Lists;
#[cfg(test)]
pub(super) use run::Delays;
pub(super) use run::{Ends, Load, Outcome, TaskAccount, run};

/// Costs in nanoseconds of CPU time. The published runs give 15.7 to 16.1 µs a page in all, for a `dd` that reads in
/// blocks of 512 bytes.
pub(super) mod cost {
    use afflux_engine::Nanos;

    /// One allocation.
    pub(in crate::s3) const ALLOCATE_NS: u64 = 350;
    /// Making a hole's page: inserting it into the file and the list, and zeroing it.
    pub(in crate::s3) const ADD_NS: u64 = 1_200;
    /// Eight reads and writes of half a kilobyte each way.
    pub(in crate::s3) const COPY_NS: u64 = 12_200;
    /// Scanning and freeing one page.
    pub(in crate::s3) const RECLAIM_NS: u64 = 1_900;
    /// A pass over the zones, and a call of the other caches.
    pub(super) const PASS_NS: u64 = 60_000;
    /// The period of the interactive task.
    pub(in crate::s3) const TICK_NS: u64 = 100 * Nanos::MILLISECOND;
    /// Its work in each period.
    pub(in crate::s3) const TICK_WORK_NS: u64 = Nanos::MILLISECOND;
}

/// The memory of the seed's machine.
pub(super) const MEMORY_BYTES: u64 = 3 << 30;
/// The mean slice of CPU time: the published tasks had 3.1 to 3.3 ms of CPU time each time they ran.
pub(super) const SLICE_NS: u64 = 3_250_000;
/// Most frames by which each CPU's part of the free count lags: the kernel's own formula for this machine.
pub(super) const DRIFT_FRAMES: u32 = 48;
/// Slabs of a frame or two that a process takes to read one file, by the sizes of 2.6.39's objects with SLAB. Memory
/// areas (26 of 22 to a slab), the task with its signals (1.0), inode and dentry (0.3), memory map (0.2), areas' trees
/// (0.4), open files, floating point, credentials and small things (0.8).
pub(super) const SLABS_A_PROCESS: u32 = 4;
/// Objects in the kernel's own caches, from the published count of `slabs_scanned`. The scan of caches uses this
/// number. Fitted.
const CACHED_OBJECTS: u64 = 28;
/// Objects that a cache scans at a time (`SHRINK_BATCH`).
const OBJECTS_AT_A_TIME: u64 = 128;
/// Percent of the frames that can hold pages; the kernel, `dd`'s own memory and the rest have the others.
const PAGES_PERCENT: u64 = 85;

/// Frames that can hold pages, of a memory of this size.
pub(super) fn page_frames(memory_bytes: u64) -> u32 {
    let all = memory_bytes / afflux_frames::FRAME_BYTES as u64;
    (all * PAGES_PERCENT / 100).min(u32::MAX.into()) as u32
}

/// The kernel's memory.
pub(super) struct Kernel {
    platform: Arc<SimPlatform>,
    zone: Zone<ShortcutDrain>,
    cpus: usize,
    lists: Mutex<Lists>,
    counts: [AtomicU64; Event::ALL.len()],
    /// Function-call interrupts of each CPU.
    interrupts: Vec<AtomicU64>,
    /// Scans that the caches still owe, in fractions of an object.
    objects_due: AtomicU64,
    background: Sleeper,
    /// For each direct reclaim, the task and the time in nanoseconds.
    delays: Mutex<Vec<(u32, u64)>>,
}

/// The sleep of kswapd.
#[derive(Default)]
struct Sleeper {
    sleeps: AtomicBool,
    woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kernel {
    fn new(platform: Arc<SimPlatform>, load: &Load) -> Self {
        let all = (load.memory_bytes / afflux_frames::FRAME_BYTES as u64).min(u32::MAX.into());
        let pages = page_frames(load.memory_bytes);
        let marks = linux_2009(all, all);
        let zone = Zone::with(pages, load.cpus, None, Some(marks)).with_drift(load.drift_frames);
        Self {
            platform,
            zone,
            cpus: load.cpus,
            // The last stream is the interactive task's.
            lists: Mutex::new(Lists::new(pages, load.readers + 1)),
            counts: Default::default(),
            interrupts: (0..load.cpus).map(|_| AtomicU64::new(0)).collect(),
            objects_due: AtomicU64::new(0),
            background: Sleeper::default(),
            delays: Mutex::default(),
        }
    }

    fn counted(&self, event: Event) -> u64 {
        self.counts[event as usize].load(Ordering::Relaxed)
    }
}

/// The kernel as one task sees it.
#[derive(Clone)]
struct Task {
    kernel: Arc<Kernel>,
    number: u32,
}

impl Task {
    fn cpu(&self) -> usize {
        self.kernel.platform.cpu()
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        lock(&self.kernel.lists)
    }
}

impl Mechanisms for Task {
    type Frame = u32;

    fn now(&self) -> Nanos {
        self.kernel.platform.now()
    }

    fn marks(&self) -> Watermarks {
        self.kernel.zone.watermarks()
    }

    fn free(&self) -> u32 {
        self.kernel.zone.seen_free()
    }

    fn sizes(&self) -> Sizes {
        self.lists().sizes()
    }

    fn take(&self, mark: u32) -> Option<u32> {
        self.kernel.zone.take_above(self.cpu(), mark, Mobility::Movable, Temperature::Cold)
    }

    fn drain_all(&self) {
        let others = (0..self.kernel.cpus).filter(|cpu| *cpu != self.cpu());
        others.for_each(|cpu| _ = self.kernel.interrupts[cpu].fetch_add(1, Ordering::Relaxed));
        self.kernel.zone.drain_all();
    }

    async fn scan(&self, _: Scanner, list: List, pages: u64) -> Scanned {
        let mut isolated = Vec::with_capacity(pages as usize);
        self.lists().isolate(list, pages, &mut isolated);
        let scanned = isolated.len() as u64;
        self.kernel.platform.work(scanned * cost::RECLAIM_NS).await;
        if list == List::Active {
            self.lists().deactivated(&isolated);
            return Scanned { scanned, reclaimed: 0 };
        }
        self.lists().freed(&isolated);
        let cpu = self.cpu();
        for frame in isolated {
            let freed = self.kernel.zone.free_on(cpu, frame, Order::SINGLE, Temperature::Cold);
            assert!(freed.is_ok(), "a page on a list has a frame that is handed out: {freed:?}");
        }
        Scanned { scanned, reclaimed: scanned }
    }

    async fn shrink_caches(&self, scanned: u64, of: u64) {
        let parts = 2 * scanned * CACHED_OBJECTS;
        let due = self.kernel.objects_due.fetch_add(parts, Ordering::Relaxed) + parts;
        let rounds = due / (of.max(1) * OBJECTS_AT_A_TIME);
        if rounds > 0 {
            self.kernel.objects_due.fetch_sub(rounds * of.max(1) * OBJECTS_AT_A_TIME, Ordering::Relaxed);
            self.count(Event::SlabsScanned, rounds * OBJECTS_AT_A_TIME);
        }
        self.kernel.platform.work(cost::PASS_NS).await;
    }

    async fn resched(&self) {
        self.kernel.platform.preemption_point().await;
    }

    async fn sleep(&self, ns: u64) {
        self.kernel.platform.sleep_until(self.now().after(ns)).await;
    }

    fn wake_background(&self) {
        let sleeper = &self.kernel.background;
        if sleeper.sleeps.load(Ordering::Relaxed) {
            sleeper.woken.store(true, Ordering::Relaxed);
            let waker = lock(&sleeper.waker).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    async fn sleep_until_woken(&self, ns: Option<u64>) -> bool {
        let sleeper = &self.kernel.background;
        sleeper.woken.store(false, Ordering::Relaxed);
        sleeper.sleeps.store(true, Ordering::Relaxed);
        let mut timer = pin!(self.kernel.platform.sleep_until(self.now().after(ns.unwrap_or(u64::MAX / 2))));
        let woken = poll_fn(|cx| {
            if sleeper.woken.load(Ordering::Relaxed) {
                return Poll::Ready(true);
            }
            *lock(&sleeper.waker) = Some(cx.waker().clone());
            if ns.is_none() { Poll::Pending } else { timer.as_mut().poll(cx).map(|()| false) }
        })
        .await;
        sleeper.sleeps.store(false, Ordering::Relaxed);
        woken
    }

    fn reclaimed_for(&self, ns: u64) {
        lock(&self.kernel.delays).push((self.number, ns));
    }

    fn count(&self, event: Event, by: u64) {
        self.kernel.counts[event as usize].fetch_add(by, Ordering::Relaxed);
    }
}
