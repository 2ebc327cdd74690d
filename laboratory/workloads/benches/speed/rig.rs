//! An engine in its own world over a device without bytes, and the clocks to measure it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use afflux_engine::{Backing, Device, Engine, File, Limits, Nanos, Operation, Platform, Request};
use afflux_simulator::{Memory, Random, Setup, SimMachine, SimPlatform, World, WorldOptions};
use rustix::time::{ClockId, clock_gettime};

pub(crate) const PAGE: u64 = 4096;

/// Answers each request after a latency, one byte after the other at its rate; stores nothing.
struct NullDevice {
    platform: Arc<SimPlatform>,
    limits: Limits,
    latency_ns: u64,
    bytes_per_second: u64,
    free_at_ns: AtomicU64,
}

impl Device for NullDevice {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        let bytes = match request.operation() {
            Operation::Read { len, .. } | Operation::Write { len, .. } => u64::from(len),
            _ => 0,
        };
        let begins = self.platform.now().0.max(self.free_at_ns.load(Ordering::Relaxed));
        let ends = begins + bytes * Nanos::SECOND / self.bytes_per_second;
        self.free_at_ns.store(ends, Ordering::Relaxed);
        self.platform.call_at(Nanos(ends + self.latency_ns), move || request.complete(Ok(())));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

/// An engine over one null device, with one file. Frames store stamps only, as in all long simulations.
pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) platform: Arc<SimPlatform>,
    pub(crate) engine: Arc<Engine<SimPlatform>>,
    pub(crate) file: File,
}

impl Rig {
    pub(crate) fn new(
        options: WorldOptions,
        cache_pages: u64,
        file_pages: u64,
        latency_ns: u64,
        bytes_per_second: u64,
    ) -> Self {
        let world = World::new(options);
        let memory = Memory::Stamped(cache_pages * PAGE);
        let SimMachine { platform, engine, .. } = SimMachine::new(&world, memory, Setup::default()).unwrap();
        let limits = Limits {
            block_bytes: 4096,
            request_bytes_max: 1 << 20,
            depth: 64,
            volatile_cache: false,
            ..Limits::default()
        };
        let free_at_ns = AtomicU64::new(0);
        let device = NullDevice { platform: Arc::clone(&platform), limits, latency_ns, bytes_per_second, free_at_ns };
        let device = engine.add_device("null", Arc::new(device));
        let file = engine.open(device, Backing::new(Arc::new(())), file_pages * PAGE);
        Self { world, platform, engine, file }
    }

    /// Random page operations by this many tasks; `write_per_mille` of them are writes.
    pub(crate) fn random_pages(&self, tasks: u64, operations: u64, write_per_mille: u64) {
        let pages = self.file.size() / PAGE;
        let left = Arc::new(AtomicU64::new(tasks));
        let done = Arc::new(Mutex::new(None::<std::task::Waker>));
        for task in 0..tasks {
            let (platform, engine, file) = (Arc::clone(&self.platform), Arc::clone(&self.engine), self.file.clone());
            let (left, done) = (Arc::clone(&left), Arc::clone(&done));
            let mut random = Random::new(task);
            self.world.spawn("worker", async move {
                let mut page = vec![1; PAGE as usize];
                for _ in 0..operations / tasks {
                    let at = random.below(pages) * PAGE;
                    if write_per_mille > 0 && random.chance(write_per_mille) {
                        engine.write(&file, at, &page).await.unwrap();
                    } else {
                        engine.read(&file, at, &mut page).await.unwrap();
                    }
                    platform.preemption_point().await;
                }
                if left.fetch_sub(1, Ordering::Relaxed) == 1
                    && let Some(waker) = done.lock().unwrap().take()
                {
                    waker.wake();
                }
            });
        }
        let all_done = std::future::poll_fn(|cx| {
            *done.lock().unwrap() = Some(cx.waker().clone());
            if left.load(Ordering::Relaxed) == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        self.world.run(all_done).unwrap();
    }
}

/// A measured duration, in nanoseconds of this thread's CPU time and of the wall clock.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
}

/// Measures the duration of `work`.
pub(crate) fn took<T>(work: impl FnOnce() -> T) -> (Took, T) {
    let (wall, cpu) = (Instant::now(), cpu_ns());
    let result = work();
    (Took { cpu_ns: cpu_ns() - cpu, wall_ns: wall.elapsed().as_nanos() as f64 }, result)
}

/// CPU time of this thread so far.
pub(crate) fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
