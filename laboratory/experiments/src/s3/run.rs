//! One run on the old kernel's memory: readers that start one after the other, and a small interactive task.
//!
//! Owns: the machine as put in, the sequence of a run, and its figures.
//! Does not own: the kernel (`afflux_kernels::mm`), the form of figures, the published ones.
//! Invariants: each figure is counted in the run. The same load and form give the same figures.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform, WaitTimes};
use afflux_kernels::mm::{Costs, Event, Form, Memory, MemoryOptions, Reader};
use afflux_simulator::{CostTable, CpuOptions, RunOrder, SimPlatform, Slice, TaskUsage, World, WorldOptions};
use serde_json::Value;

use crate::machine::lock;
use crate::statistics::percentile;

/// CPU time. The published runs give 15.7 to 16.1 µs a page in all, for a `dd` that reads in blocks of 512 bytes: the
/// sum is put in. Its parts have no source.
pub(super) const COSTS: Costs =
    Costs { allocate_ns: 350, add_ns: 1_200, copy_ns: 12_200, reclaim_ns: 1_900, pass_ns: 60_000 };
/// The period of the interactive task, and its work in each.
pub(super) const TICK_NS: u64 = 100 * Nanos::MILLISECOND;
pub(super) const TICK_WORK_NS: u64 = Nanos::MILLISECOND;
/// The memory of the seed's machine.
pub(super) const MEMORY_BYTES: u64 = 3 << 30;
/// The mean slice of CPU time: the published tasks had 3.1 to 3.3 ms of CPU time each time they ran.
const SLICE_NS: u64 = 3_250_000;
/// The fair queue's credit for a task that slept: half of 6 ms times 1 + log2 of the CPUs, here 8.
const CREDIT_NS: u64 = 12_000_000;
/// Slabs of a frame or two that a process takes to read one file, by the sizes of 2.6.39's objects with SLAB. Memory
/// areas (26 of 22 to a slab), the task with its signals (1.0), inode and dentry (0.3), memory map (0.2), areas' trees
/// (0.4), open files, floating point, credentials and small things (0.8).
const SLABS_A_PROCESS: u32 = 4;
/// Objects in the kernel's own caches, from the published count of `slabs_scanned`. Chosen to match.
const CACHED_OBJECTS: u64 = 28;
/// Percent of the frames that can hold pages; the kernel, `dd`'s own memory and the rest have the others. No source.
const PAGES_PERCENT: u64 = 85;
/// The shell's work to start a process, a process's own to begin and end, and its pages. No source.
const FORK_NS: u64 = 300_000;
const EXEC_NS: u64 = 700_000;
const EXEC_PAGES: u32 = 64;

/// Frames that can hold pages, of a memory of this size.
pub(super) fn page_frames(memory_bytes: u64) -> u32 {
    let all = memory_bytes / afflux_frames::FRAME_BYTES as u64;
    (all * PAGES_PERCENT / 100).min(u32::MAX.into()) as u32
}

/// How readers start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// Evenly, over these nanoseconds.
    Evenly(u64),
    /// As the seed's script: a shell runs `truncate`, waits for it, and starts a `dd`. It waits for the CPU like
    /// others.
    Shell,
    /// One task reads all files, a few pages of each in turn.
    OneTask,
}

/// The order in which tasks get CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// By CPU time used, as in the kernel; otherwise in the order in which they became ready.
    pub(super) is_fair: bool,
    /// kswapd goes ahead of all others, which is a control.
    pub(super) kswapd_ahead: bool,
    /// The engine's background reclaim goes ahead, as its thread's priority does on Linux.
    pub(super) afflux_ahead: bool,
}

/// The load of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Load {
    pub(super) seed: u64,
    pub(super) readers: usize,
    pub(super) file_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) cpus: usize,
    pub(super) start: Start,
    pub(super) order: Order,
    /// Most frames by which each CPU's part of the free count may lag; `None` for the kernel's formula.
    pub(super) drift_frames: Option<u32>,
    /// Percent of the frames for pages that are dirty, and mapped, for the whole run.
    pub(super) dirty_percent: u64,
    pub(super) mapped_percent: u64,
}

impl Load {
    /// The virtual machine, with these costs. Tasks that ask for it go ahead of others, or do not.
    pub(super) fn world(&self, costs: CostTable, may_go_ahead: bool) -> World {
        let order = if self.order.is_fair { RunOrder::Fair { credit_ns: CREDIT_NS } } else { RunOrder::Ready };
        let slice = Slice::Exponential(SLICE_NS);
        let cpus = CpuOptions { cpus: self.cpus, slice, order, may_go_ahead, switch_per_mille: 0, costs };
        World::new(WorldOptions::machine(self.seed, cpus))
    }

    /// Whether pages that no scan can free fill a part of memory.
    pub(super) fn is_held(&self) -> bool {
        self.dirty_percent + self.mapped_percent > 0
    }

    fn file_pages(&self) -> u32 {
        (self.file_bytes / afflux_frames::FRAME_BYTES as u64).min(u32::MAX.into()) as u32
    }
}

/// CPU time and waits of one reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TaskAccount {
    pub(super) cpu: TaskUsage,
    pub(super) reclaims: u64,
    pub(super) reclaim_ns: u64,
}

/// The figures of these times, in any order.
fn wait_times(mut each_ns: Vec<u64>) -> WaitTimes {
    each_ns.sort_unstable();
    let (count, ns) = (each_ns.len() as u64, each_ns.iter().sum());
    let (p99_ns, max_ns) = (percentile(&each_ns, 990), each_ns.last().copied().unwrap_or(0));
    WaitTimes { count, ns, p99_ns, max_ns, ..WaitTimes::default() }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Counts by the kernel's names.
    pub(super) counts: Vec<(&'static str, u64)>,
    /// Function-call interrupts of each CPU.
    pub(super) interrupts: Vec<u64>,
    /// Times of direct reclaims.
    pub(super) delays: WaitTimes,
    pub(super) tasks: Vec<TaskAccount>,
    pub(super) start_ns: u64,
    pub(super) total_ns: u64,
    /// How much longer the interactive task took than its work, sorted.
    pub(super) interactive_ns: Vec<u64>,
    /// How often a task lost its CPU at the end of its slice.
    pub(super) preemptions: u64,
    /// The engine's own account; `None` for the kernel, which has its account by task alone.
    pub(super) delays_by_device: Option<Value>,
}

/// A barrier at which one task waits for others to end.
#[derive(Default)]
struct Left {
    count: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Left {
    fn ended(&self) {
        if self.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            let waker = lock(&self.waker).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn is_over(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    async fn all(&self) {
        poll_fn(|cx| {
            *lock(&self.waker) = Some(cx.waker().clone());
            if self.is_over() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// The records that the tasks of a run leave behind.
pub(super) struct Ends {
    left: Left,
    usages: Mutex<Vec<(u32, TaskUsage)>>,
    interactive_ns: Mutex<Vec<u64>>,
}

impl Ends {
    pub(super) fn new(readers: usize) -> Self {
        let left = Left { count: AtomicUsize::new(readers), ..Left::default() };
        Self { left, usages: Mutex::default(), interactive_ns: Mutex::default() }
    }

    pub(super) fn reader_ended(&self, number: u32, usage: TaskUsage) {
        lock(&self.usages).push((number, usage));
        self.left.ended();
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.is_over()
    }

    /// Waits until all readers have ended.
    pub(super) async fn all(&self) {
        self.left.all().await;
    }

    /// Records a time of the interactive task beyond its work.
    pub(super) fn interacted(&self, ns: u64) {
        lock(&self.interactive_ns).push(ns);
    }

    /// All these times, sorted.
    pub(super) fn interactive_ns(&self) -> Vec<u64> {
        let mut all = lock(&self.interactive_ns).clone();
        all.sort_unstable();
        all
    }

    /// Passes the CPU usage of each reader to `tell`.
    pub(super) fn usages(&self, mut tell: impl FnMut(u32, TaskUsage)) {
        lock(&self.usages).iter().for_each(|(number, usage)| tell(*number, *usage));
    }
}

/// Starts all readers as `start` says; returns when the last has started. `reader` makes one, `truncate` a process that
/// ends soon.
pub(super) async fn start_readers<R, T>(
    load: &Load,
    platform: &Arc<SimPlatform>,
    mut reader: impl FnMut(u32) -> R,
    mut truncate: impl FnMut() -> T,
) where
    R: Future<Output = ()> + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    for number in 0..load.readers as u32 {
        if load.start == Start::Shell {
            platform.work(FORK_NS).await;
            let left = Arc::new(Left { count: AtomicUsize::new(1), ..Left::default() });
            let (process, ended) = (truncate(), Arc::clone(&left));
            platform.spawn("truncate", async move {
                process.await;
                ended.ended();
            });
            left.all().await;
            platform.work(FORK_NS).await;
        }
        platform.spawn("dd", reader(number));
        if let Start::Evenly(ns) = load.start {
            let next = ns / load.readers.max(1) as u64 * u64::from(number + 1);
            platform.sleep_until(Nanos(next)).await;
        }
    }
}

/// Runs the load under a form of reclaim.
pub(super) fn run(load: &Load, form: &Form) -> Result<Outcome, String> {
    let world = load.world(CostTable::free(), true);
    let platform = Arc::clone(world.platform());
    let memory = boot(&platform, load, *form);
    let tasks = if load.start == Start::OneTask { 1 } else { load.readers };
    let ends = Arc::new(Ends::new(tasks));
    let interactive = Reader::new(load.readers as u32, load.readers as u32);
    platform.spawn("interactive", interact(Arc::clone(&memory), Arc::clone(&platform), interactive, Arc::clone(&ends)));
    let pages = load.file_pages();
    let ran = world.run(async {
        if load.start == Start::OneTask {
            platform.spawn("reader", read_all(Arc::clone(&memory), Arc::clone(&platform), *load, Arc::clone(&ends)));
        } else {
            let reader = |number| {
                let (memory, platform, ends) = (Arc::clone(&memory), Arc::clone(&platform), Arc::clone(&ends));
                async move {
                    memory.exec(number, SLABS_A_PROCESS, 0).await;
                    let mut reader = Reader::new(number, number);
                    while memory.read(&mut reader, pages).await {}
                    ends.reader_ended(number, platform.task_usage());
                }
            };
            // It takes the objects that the process before it left in the caches.
            let truncate = || {
                let (memory, platform) = (Arc::clone(&memory), Arc::clone(&platform));
                async move {
                    let own = memory.exec(u32::MAX, 0, EXEC_PAGES).await;
                    platform.work(EXEC_NS).await;
                    memory.exit(own);
                }
            };
            start_readers(load, &platform, reader, truncate).await;
        }
        let started_ns = platform.now().0;
        ends.all().await;
        started_ns
    });
    let started_ns = ran.map_err(|error| error.to_string())?;
    Ok(outcome(&world, &memory, &ends, load, started_ns))
}

fn boot(platform: &Arc<SimPlatform>, load: &Load, form: Form) -> Arc<Memory> {
    let page_frames = page_frames(load.memory_bytes);
    let memory = Memory::boot(
        platform,
        MemoryOptions {
            memory_bytes: load.memory_bytes,
            page_frames,
            cpus: load.cpus,
            drift_frames: load.drift_frames,
            // The last file is the interactive task's.
            files: load.readers + 1,
            cached_objects: CACHED_OBJECTS,
            costs: COSTS,
            form,
            kswapd_ahead: load.order.kswapd_ahead,
        },
    );
    if load.is_held() {
        let of = |percent| (u64::from(page_frames) * percent / 100) as u32;
        memory.fill(of(load.dirty_percent), of(load.mapped_percent), load.seed);
    }
    memory
}

/// One task reads all files, a few pages of each in turn.
async fn read_all(memory: Arc<Memory>, platform: Arc<SimPlatform>, load: Load, ends: Arc<Ends>) {
    let pages = load.file_pages();
    let mut readers: Vec<Reader> = (0..load.readers as u32).map(|file| Reader::new(0, file)).collect();
    memory.exec(0, SLABS_A_PROCESS, 0).await;
    while !readers.is_empty() {
        let mut left = Vec::with_capacity(readers.len());
        for mut reader in readers {
            if memory.read(&mut reader, pages).await {
                left.push(reader);
            }
        }
        readers = left;
    }
    ends.reader_ended(0, platform.task_usage());
}

/// Wakes ten times a second for a millisecond of work and one page, until all readers have ended. Records how much
/// longer than its work each time took.
async fn interact(memory: Arc<Memory>, platform: Arc<SimPlatform>, mut reader: Reader, ends: Arc<Ends>) {
    while !ends.is_over() {
        let due = platform.now().after(TICK_NS);
        platform.sleep_until(due).await;
        platform.work(TICK_WORK_NS).await;
        memory.read_one(&mut reader).await;
        ends.interacted(platform.now().since(due).saturating_sub(TICK_WORK_NS));
    }
}

fn outcome(world: &World, memory: &Memory, ends: &Ends, load: &Load, started_ns: u64) -> Outcome {
    let mut tasks = vec![TaskAccount::default(); load.readers];
    ends.usages(|number, usage| tasks[number as usize].cpu = usage);
    let delays = memory.take_delays();
    for (number, ns) in &delays {
        if let Some(task) = tasks.get_mut(*number as usize) {
            task.reclaims += 1;
            task.reclaim_ns += ns;
        }
    }
    Outcome {
        counts: Event::ALL.iter().map(|event| (event.name(), memory.counted(*event))).collect(),
        interrupts: memory.interrupts(),
        delays: wait_times(delays.into_iter().map(|(_, ns)| ns).collect()),
        tasks,
        start_ns: started_ns,
        total_ns: world.platform().now().0,
        interactive_ns: ends.interactive_ns(),
        preemptions: world.cpu_usage().preemptions,
        delays_by_device: None,
    }
}
