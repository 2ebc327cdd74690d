//! The same load on the engine, with its own reclaim (`afflux`) or with a form of the kernel's in its place.
//!
//! The readers, their CPU time, the virtual CPUs and the memory are those of the simulated kernel. Pages are freed by
//! the engine's background task, which goes ahead of others, and by readers that find no free frame. Freeing a page
//! costs the same as in the kernel.
//!
//! Owns: the machine, the readers. Does not own: reclaim (`engine`).
//! Invariants: each figure is counted in the run.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::counters::Counter;
use afflux_engine::old_kernels::OldKernel;
use afflux_engine::{Backing, Device, Engine, File, Limits, Nanos, Platform, Policies, Request};
use afflux_frames::{FRAME_BYTES, Frames};
use afflux_linux_policies::reclaim::ReclaimPolicy;
use afflux_simulator::{Cost, CostOf, CostTable, CpuOptions, SimPlatform, Slice, World, WorldOptions};

use super::kernel::{Ends, Load, Outcome, SLICE_NS, TaskAccount, cost, lock, page_frames};
use crate::delays::delays;

/// Pages in one read of a reader: as many as the kernel's reader copies between two looks at the clock.
const CALL_PAGES: u64 = 8;

/// A device of holes: reads complete at once.
pub(super) struct Holes(pub(super) Limits);

impl Device for Holes {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

/// Freeing a page costs the same as in the kernel; the readers charge everything else themselves, as the kernel's do.
fn costs() -> CostTable {
    let of = CostOf::Counter(Counter::PagesEvicted);
    let source = "as the simulated kernel".to_owned();
    CostTable::new("the machine of seed S3", vec![Cost { of, ps: cost::RECLAIM_NS * 1000, source }])
}

/// An engine over holes.
struct HoleMachine {
    platform: Arc<SimPlatform>,
    engine: Arc<Engine<SimPlatform>>,
    device: afflux_engine::DeviceId,
    files: Mutex<Vec<File>>,
}

impl HoleMachine {
    fn new(world: &World, load: &Load, form: Option<ReclaimPolicy>) -> Result<Self, String> {
        let bytes = u64::from(page_frames(load.memory_bytes)) * FRAME_BYTES as u64;
        let frames = Frames::new_stamped(bytes).map_err(|error| error.to_string())?;
        let platform = Arc::clone(world.platform());
        let old_kernel = form.map(|form| Arc::new(form) as Arc<dyn OldKernel>);
        let policies = Policies { old_kernel, ..Policies::default() };
        let engine =
            Engine::with_policies(Arc::clone(&platform), afflux_engine::settings::Settings::new(), frames, policies);
        let limits = Limits { request_bytes_max: 1 << 20, depth: 1024, volatile_cache: false, ..Limits::default() };
        let device = engine.add_device("holes", Arc::new(Holes(limits)));
        Ok(Self { platform, engine, device, files: Mutex::default() })
    }

    fn file(&self, bytes: u64) -> File {
        self.engine.open(self.device, Backing::new(Arc::new(())), bytes)
    }

    /// Reads a file from its start to its end, as `dd` does.
    fn read_file(&self, bytes: u64) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let (platform, engine, file) = (Arc::clone(&self.platform), Arc::clone(&self.engine), self.file(bytes));
        // Stays open for good, so that its pages remain after the read, as in a kernel.
        lock(&self.files).push(file.clone());
        async move {
            let mut at = 0;
            while at < bytes {
                let want = (bytes - at).min(CALL_PAGES * FRAME_BYTES as u64);
                // Reads without the copy, which is charged below.
                let read = engine.read_pinned(&file, at, want as usize).await.map_err(|error| error.to_string())?;
                drop(read.ok_or("guards hold too much of the cache")?);
                let pages = want.div_ceil(FRAME_BYTES as u64);
                at += want;
                platform.work(pages * (cost::ALLOCATE_NS + cost::ADD_NS + cost::COPY_NS)).await;
            }
            Ok(())
        }
    }

    /// The interactive task, as in the kernel.
    fn interact(&self, ends: &Arc<Ends>, free: &Arc<AtomicUsize>) -> impl Future<Output = ()> + Send + 'static {
        let (platform, engine, file) = (Arc::clone(&self.platform), Arc::clone(&self.engine), self.file(1 << 40));
        let (ends, free) = (Arc::clone(ends), Arc::clone(free));
        async move {
            let (mut page, mut at) = ([0; FRAME_BYTES], 0);
            while !ends.is_over() {
                let due = platform.now().after(cost::TICK_NS);
                platform.sleep_until(due).await;
                platform.work(cost::TICK_WORK_NS).await;
                // A page that was not read before, of a file without an end.
                let _ = engine.read(&file, at, &mut page).await;
                at += 3 * FRAME_BYTES as u64;
                ends.interacted(platform.now().since(due).saturating_sub(cost::TICK_WORK_NS));
                free.fetch_min(engine.frames().free_count() as usize, Ordering::Relaxed);
            }
        }
    }
}

/// Runs the load under the engine's own form of reclaim, or under `form`.
///
/// # Errors
/// When the simulated world does not come to an end, or a read fails.
pub(super) fn run(load: &Load, form: Option<ReclaimPolicy>) -> Result<Outcome, String> {
    let slice = Slice::Exponential(SLICE_NS);
    let cpus = CpuOptions { cpus: load.cpus, slice, switch_per_mille: 0, costs: costs() };
    let world = World::new(WorldOptions::machine(load.seed, cpus));
    let machine = HoleMachine::new(&world, load, form)?;
    let ends = Arc::new(Ends::new(load.readers));
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let free_min = Arc::new(AtomicUsize::new(usize::MAX));
    world.spawn("interactive", machine.interact(&ends, &free_min));
    let ran = world.run(async {
        for number in 0..load.readers as u32 {
            let (reader, ends) = (machine.read_file(load.file_bytes), Arc::clone(&ends));
            let (platform, failure) = (Arc::clone(&machine.platform), Arc::clone(&failure));
            world.spawn("dd", async move {
                if let Err(error) = reader.await {
                    lock(&failure).get_or_insert(error);
                }
                ends.reader_ended(number, platform.task_usage());
            });
            machine.platform.sleep_until(Nanos(load.started_ns(number + 1))).await;
        }
        let started_ns = machine.platform.now().0;
        ends.all().await;
        started_ns
    });
    let started_ns = ran.map_err(|error| error.to_string())?;
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    Ok(outcome(&world, &machine, &ends, load, started_ns))
}

fn outcome(world: &World, machine: &HoleMachine, ends: &Ends, load: &Load, started_ns: u64) -> Outcome {
    let counted = |counter: Counter| machine.platform.counters().sum()[counter as usize];
    let waits = machine.engine.reclaim_waits();
    let mut tasks = vec![TaskAccount::default(); load.readers];
    ends.usages(|number, usage| tasks[number as usize].cpu = usage);
    Outcome {
        counts: vec![
            ("allocstall", counted(Counter::AllocStall)),
            ("nr_alloc_fail", counted(Counter::AllocFail)),
            ("demand_alloc_fail", counted(Counter::DemandAllocFail)),
            ("pgscan", counted(Counter::PagesScanned)),
            ("pgsteal", counted(Counter::PagesEvicted)),
        ],
        interrupts: vec![0; load.cpus],
        delays: waits.into(),
        tasks,
        start_ns: started_ns,
        total_ns: machine.platform.now().0,
        interactive_ns: ends.interactive_ns(),
        preemptions: world.cpu_usage().preemptions,
        delays_by_device: Some(delays(&machine.engine, &[machine.device])),
    }
}
