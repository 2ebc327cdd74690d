//! One run: readers started one after the other, kswapd, and a task that does little and often.
//!
//! Owns: the order of things, the figures of a run.
//! Does not own: how they are shown, what was published.
//! Invariants: each figure is counted in the run. The same load and policy give the same figures.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use engine::{Nanos, Platform};
use linux_policies::reclaim::{Event, ReclaimPolicy, background};
use simulator::{CostTable, CpuOptions, RunError, Slice, TaskUsage, World, WorldOptions};

use super::{Kernel, Task, lock};

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::s3) struct Load {
    pub(in crate::s3) seed: u64,
    pub(in crate::s3) readers: usize,
    pub(in crate::s3) file_bytes: u64,
    pub(in crate::s3) memory_bytes: u64,
    pub(in crate::s3) cpus: usize,
    /// The mean of the slices of CPU time.
    pub(in crate::s3) slice_ns: u64,
    /// From the start of the first reader until the start of the last.
    pub(in crate::s3) start_ns: u64,
    /// How far each CPU's part of the free count may lag.
    pub(in crate::s3) drift_frames: u32,
}

/// What one reader had and waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::s3) struct TaskAccount {
    pub(in crate::s3) cpu: TaskUsage,
    pub(in crate::s3) reclaims: u64,
    pub(in crate::s3) reclaim_ns: u64,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(in crate::s3) struct Outcome {
    /// By the kernel's names.
    pub(in crate::s3) counts: Vec<(&'static str, u64)>,
    /// Function calls that each CPU was interrupted for.
    pub(in crate::s3) interrupts: Vec<u64>,
    /// How long each direct reclaim took, the shortest first.
    pub(in crate::s3) delays_ns: Vec<u64>,
    pub(in crate::s3) tasks: Vec<TaskAccount>,
    pub(in crate::s3) start_ns: u64,
    pub(in crate::s3) total_ns: u64,
    /// How much longer than its work the interactive task took, the shortest first.
    pub(in crate::s3) interactive_ns: Vec<u64>,
    /// How many times others took the CPU of a task.
    pub(in crate::s3) preemptions: u64,
}

/// What the tasks of a run leave behind.
struct Ends {
    left: AtomicUsize,
    waker: Mutex<Option<Waker>>,
    usages: Mutex<Vec<(u32, TaskUsage)>>,
    interactive_ns: Mutex<Vec<u64>>,
}

impl Ends {
    fn reader_ended(&self, number: u32, usage: TaskUsage) {
        lock(&self.usages).push((number, usage));
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let waker = lock(&self.waker).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    async fn all(&self) {
        poll_fn(|cx| {
            *lock(&self.waker) = Some(cx.waker().clone());
            if self.left.load(Ordering::Relaxed) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Runs the load under a form of reclaim.
///
/// # Errors
/// When the simulated world comes to no end.
pub(in crate::s3) fn run(load: &Load, policy: &ReclaimPolicy) -> Result<Outcome, RunError> {
    let slice = Slice::Exponential(load.slice_ns);
    let cpus = CpuOptions { cpus: load.cpus, slice, switch_per_mille: 0, costs: CostTable::free() };
    let world = World::new(WorldOptions::machine(load.seed, cpus));
    let platform = Arc::clone(world.platform());
    let kernel = Arc::new(Kernel::new(Arc::clone(&platform), load));
    let ends = Arc::new(Ends {
        left: AtomicUsize::new(load.readers),
        waker: Mutex::default(),
        usages: Mutex::default(),
        interactive_ns: Mutex::default(),
    });
    spawn_others(&world, &kernel, &ends, load, *policy);
    let file_pages = (load.file_bytes / frames::FRAME_BYTES as u64).min(u32::MAX.into()) as u32;
    let started_ns = world.run(async {
        for number in 0..load.readers as u32 {
            let task = Task { kernel: Arc::clone(&kernel), number };
            let (ends, policy) = (Arc::clone(&ends), *policy);
            world.spawn("dd", async move {
                task.read_file(&policy, file_pages).await;
                ends.reader_ended(number, task.kernel.platform.task_usage());
            });
            platform.sleep_until(Nanos(load.start_ns / load.readers as u64 * u64::from(number + 1))).await;
        }
        let started_ns = platform.now().0;
        ends.all().await;
        started_ns
    })?;
    Ok(outcome(&world, &kernel, &ends, load, started_ns))
}

fn spawn_others(world: &World, kernel: &Arc<Kernel>, ends: &Arc<Ends>, load: &Load, policy: ReclaimPolicy) {
    let task = Task { kernel: Arc::clone(kernel), number: u32::MAX };
    let pages = load.memory_bytes / frames::FRAME_BYTES as u64;
    world.spawn("kswapd", async move { background(&task, pages).await });
    let task = Task { kernel: Arc::clone(kernel), number: load.readers as u32 };
    let ends = Arc::clone(ends);
    world.spawn("interactive", async move {
        let is_over = || ends.left.load(Ordering::Relaxed) == 0;
        task.interact(&policy, is_over, |ns| lock(&ends.interactive_ns).push(ns)).await;
    });
}

fn outcome(world: &World, kernel: &Kernel, ends: &Ends, load: &Load, started_ns: u64) -> Outcome {
    let mut tasks = vec![TaskAccount::default(); load.readers];
    for (number, usage) in lock(&ends.usages).iter() {
        tasks[*number as usize].cpu = *usage;
    }
    let mut delays_ns = Vec::new();
    for (number, ns) in lock(&kernel.delays).iter() {
        delays_ns.push(*ns);
        if let Some(task) = tasks.get_mut(*number as usize) {
            task.reclaims += 1;
            task.reclaim_ns += ns;
        }
    }
    delays_ns.sort_unstable();
    let mut interactive_ns = std::mem::take(&mut *lock(&ends.interactive_ns));
    interactive_ns.sort_unstable();
    Outcome {
        counts: Event::ALL.iter().map(|event| (event.name(), kernel.counted(*event))).collect(),
        interrupts: kernel.interrupts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
        delays_ns,
        tasks,
        start_ns: started_ns,
        total_ns: kernel.platform.now().0,
        interactive_ns,
        preemptions: world.cpu_usage().preemptions,
    }
}
