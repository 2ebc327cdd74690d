//! One run: readers that start one after the other, kswapd, and a small interactive task.
//!
//! Owns: the sequence of a run, and its figures.
//! Does not own: the form of figures, the published ones.
//! Invariants: each figure is counted in the run. The same load and policy give the same figures.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afflux_engine::{Nanos, Platform, WaitTimes};
use afflux_linux_policies::reclaim::{Event, ReclaimPolicy, background};
use afflux_simulator::{CostTable, CpuOptions, Slice, TaskUsage, World, WorldOptions};
use serde_json::Value;

use super::{Kernel, SLICE_NS, Task, lock};

/// The load of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::s3) struct Load {
    pub(in crate::s3) seed: u64,
    pub(in crate::s3) readers: usize,
    pub(in crate::s3) file_bytes: u64,
    pub(in crate::s3) memory_bytes: u64,
    pub(in crate::s3) cpus: usize,
    /// Time from the start of the first reader to the start of the last.
    pub(in crate::s3) start_ns: u64,
    /// Most frames by which each CPU's part of the free count may lag.
    pub(in crate::s3) drift_frames: u32,
}

impl Load {
    /// The instant at which reader `number` starts, counted from 0.
    pub(in crate::s3) fn started_ns(&self, number: u32) -> u64 {
        self.start_ns / self.readers.max(1) as u64 * u64::from(number)
    }
}

/// CPU time and waits of one reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::s3) struct TaskAccount {
    pub(in crate::s3) cpu: TaskUsage,
    pub(in crate::s3) reclaims: u64,
    pub(in crate::s3) reclaim_ns: u64,
}

/// Times of direct reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::s3) struct Delays {
    pub(in crate::s3) count: u64,
    pub(in crate::s3) ns: u64,
    pub(in crate::s3) p99_ns: u64,
    pub(in crate::s3) max_ns: u64,
}

impl Delays {
    /// Computes the figures of these times, in any order.
    fn of(mut each_ns: Vec<u64>) -> Self {
        each_ns.sort_unstable();
        let (count, ns) = (each_ns.len() as u64, each_ns.iter().sum());
        let p99_ns = each_ns.get((each_ns.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
        Self { count, ns, p99_ns, max_ns: each_ns.last().copied().unwrap_or(0) }
    }
}

impl From<WaitTimes> for Delays {
    fn from(times: WaitTimes) -> Self {
        Self { count: times.count, ns: times.ns, p99_ns: times.p99_ns, max_ns: times.max_ns }
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::s3) struct Outcome {
    /// Counts by the kernel's names.
    pub(in crate::s3) counts: Vec<(&'static str, u64)>,
    /// Function-call interrupts of each CPU.
    pub(in crate::s3) interrupts: Vec<u64>,
    pub(in crate::s3) delays: Delays,
    pub(in crate::s3) tasks: Vec<TaskAccount>,
    pub(in crate::s3) start_ns: u64,
    pub(in crate::s3) total_ns: u64,
    /// How much longer the interactive task took than its work, sorted.
    pub(in crate::s3) interactive_ns: Vec<u64>,
    /// How often a task lost its CPU at the end of its slice.
    pub(in crate::s3) preemptions: u64,
    /// The engine's own account; `None` for a simulated kernel, which has its account by task alone.
    pub(in crate::s3) delays_by_device: Option<Value>,
}

/// The records that the tasks of a run leave behind.
pub(in crate::s3) struct Ends {
    left: AtomicUsize,
    waker: Mutex<Option<Waker>>,
    usages: Mutex<Vec<(u32, TaskUsage)>>,
    interactive_ns: Mutex<Vec<u64>>,
}

impl Ends {
    pub(in crate::s3) fn new(readers: usize) -> Self {
        let (waker, usages, interactive_ns) = Default::default();
        Self { left: AtomicUsize::new(readers), waker, usages, interactive_ns }
    }

    pub(in crate::s3) fn reader_ended(&self, number: u32, usage: TaskUsage) {
        lock(&self.usages).push((number, usage));
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let waker = lock(&self.waker).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(in crate::s3) fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Waits until all readers have ended.
    pub(in crate::s3) async fn all(&self) {
        poll_fn(|cx| {
            *lock(&self.waker) = Some(cx.waker().clone());
            if self.is_over() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Records a time of the interactive task beyond its work.
    pub(in crate::s3) fn interacted(&self, ns: u64) {
        lock(&self.interactive_ns).push(ns);
    }

    /// All these times, sorted.
    pub(in crate::s3) fn interactive_ns(&self) -> Vec<u64> {
        let mut all = lock(&self.interactive_ns).clone();
        all.sort_unstable();
        all
    }

    /// Passes the CPU usage of each reader to `tell`.
    pub(in crate::s3) fn usages(&self, mut tell: impl FnMut(u32, TaskUsage)) {
        lock(&self.usages).iter().for_each(|(number, usage)| tell(*number, *usage));
    }
}

/// Runs the load under a form of reclaim.
///
/// # Errors
/// When the simulated world does not come to an end.
pub(in crate::s3) fn run(load: &Load, policy: &ReclaimPolicy) -> Result<Outcome, String> {
    let slice = Slice::Exponential(SLICE_NS);
    let cpus = CpuOptions { cpus: load.cpus, slice, switch_per_mille: 0, costs: CostTable::free() };
    let world = World::new(WorldOptions::machine(load.seed, cpus));
    let platform = Arc::clone(world.platform());
    let kernel = Arc::new(Kernel::new(Arc::clone(&platform), load));
    let ends = Arc::new(Ends::new(load.readers));
    spawn_others(&world, &kernel, &ends, load, *policy);
    let file_pages = (load.file_bytes / afflux_frames::FRAME_BYTES as u64).min(u32::MAX.into()) as u32;
    let ran = world.run(async {
        for number in 0..load.readers as u32 {
            let task = Task { kernel: Arc::clone(&kernel), number };
            let (ends, policy) = (Arc::clone(&ends), *policy);
            world.spawn("dd", async move {
                task.start(&policy).await;
                task.read_file(&policy, file_pages).await;
                ends.reader_ended(number, task.kernel.platform.task_usage());
            });
            platform.sleep_until(Nanos(load.started_ns(number + 1))).await;
        }
        let started_ns = platform.now().0;
        ends.all().await;
        started_ns
    });
    let started_ns = ran.map_err(|error| error.to_string())?;
    Ok(outcome(&world, &kernel, &ends, load, started_ns))
}

fn spawn_others(world: &World, kernel: &Arc<Kernel>, ends: &Arc<Ends>, load: &Load, policy: ReclaimPolicy) {
    let task = Task { kernel: Arc::clone(kernel), number: u32::MAX };
    let pages = load.memory_bytes / afflux_frames::FRAME_BYTES as u64;
    world.spawn("kswapd", async move { background(&task, pages).await });
    let task = Task { kernel: Arc::clone(kernel), number: load.readers as u32 };
    let ends = Arc::clone(ends);
    world.spawn("interactive", async move { task.interact(&policy, &ends).await });
}

fn outcome(world: &World, kernel: &Kernel, ends: &Ends, load: &Load, started_ns: u64) -> Outcome {
    let mut tasks = vec![TaskAccount::default(); load.readers];
    ends.usages(|number, usage| tasks[number as usize].cpu = usage);
    let delays = std::mem::take(&mut *lock(&kernel.delays));
    for (number, ns) in &delays {
        if let Some(task) = tasks.get_mut(*number as usize) {
            task.reclaims += 1;
            task.reclaim_ns += ns;
        }
    }
    Outcome {
        counts: Event::ALL.iter().map(|event| (event.name(), kernel.counted(*event))).collect(),
        interrupts: kernel.interrupts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
        delays: Delays::of(delays.into_iter().map(|(_, ns)| ns).collect()),
        tasks,
        start_ns: started_ns,
        total_ns: kernel.platform.now().0,
        interactive_ns: ends.interactive_ns(),
        preemptions: world.cpu_usage().preemptions,
        delays_by_device: None,
    }
}
