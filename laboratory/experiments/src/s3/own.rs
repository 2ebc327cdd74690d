//! The same load on the engine, with its own reclaim.
//!
//! The readers, their CPU time, the virtual CPUs and the memory are those of the kernel. Pages are freed by the
//! engine's background task, which goes ahead of others, and by readers that find no free frame. Freeing a page costs
//! the same as in the kernel.
//!
//! Owns: the machine, the readers. Does not own: reclaim (`engine`).
//! Invariants: each figure is counted in the run.

use std::future::Future;
use std::sync::{Arc, Mutex};

use afflux_engine::counters::Counter;
use afflux_engine::{Backing, Device, Engine, File, Limits, Platform, Request};
use afflux_frames::{FRAME_BYTES, Frames};
use afflux_simulator::{Cost, CostOf, CostTable, SimPlatform, World};

use super::run::{COSTS, Ends, Load, Outcome, Start, TICK_NS, TICK_WORK_NS, TaskAccount, page_frames, start_readers};
use crate::delays::delays;
use crate::machine::lock;

/// Pages in one read of a reader: as many as the kernel's reader copies between two looks at the clock.
const CALL_PAGES: u64 = 8;

/// A device of holes: reads complete at once.
struct Holes(Limits);

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
    CostTable::new("the machine of seed S3", vec![Cost { of, ps: COSTS.reclaim_ns * 1000, source }])
}

/// An engine over holes.
struct HoleMachine {
    platform: Arc<SimPlatform>,
    engine: Arc<Engine<SimPlatform>>,
    device: afflux_engine::DeviceId,
    files: Mutex<Vec<File>>,
}

impl HoleMachine {
    fn new(world: &World, load: &Load) -> Result<Self, String> {
        let bytes = u64::from(page_frames(load.memory_bytes)) * FRAME_BYTES as u64;
        let frames = Frames::new_stamped(bytes).map_err(|error| error.to_string())?;
        let platform = Arc::clone(world.platform());
        let engine = Engine::new(Arc::clone(&platform), afflux_engine::settings::Settings::new(), frames);
        let limits = Limits { request_bytes_max: 1 << 20, depth: 1024, volatile_cache: false, ..Limits::default() };
        let device = engine.add_device("holes", Arc::new(Holes(limits)));
        Ok(Self { platform, engine, device, files: Mutex::default() })
    }

    fn file(&self, bytes: u64) -> File {
        let file = self.engine.open(self.device, Backing::new(Arc::new(())), bytes);
        // Stays open for good, so that its pages remain after the read, as in a kernel.
        lock(&self.files).push(file.clone());
        file
    }

    /// Reads files from their starts to their ends, a few pages of each in turn.
    fn read_files(&self, count: usize, bytes: u64) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let (platform, engine) = (Arc::clone(&self.platform), Arc::clone(&self.engine));
        let files: Vec<File> = (0..count).map(|_| self.file(bytes)).collect();
        async move {
            let mut at = 0;
            while at < bytes {
                let want = (bytes - at).min(CALL_PAGES * FRAME_BYTES as u64);
                let pages = want.div_ceil(FRAME_BYTES as u64);
                for file in &files {
                    // Reads without the copy, which is charged below.
                    let read = engine.read_pinned(file, at, want as usize).await.map_err(|error| error.to_string())?;
                    drop(read.ok_or("guards hold too much of the cache")?);
                    platform.work(pages * (COSTS.allocate_ns + COSTS.add_ns + COSTS.copy_ns)).await;
                }
                at += want;
            }
            Ok(())
        }
    }

    /// The interactive task, as in the kernel.
    fn interact(&self, ends: &Arc<Ends>) -> impl Future<Output = ()> + Send + 'static {
        let (platform, engine, file) = (Arc::clone(&self.platform), Arc::clone(&self.engine), self.file(1 << 40));
        let ends = Arc::clone(ends);
        async move {
            let (mut page, mut at) = ([0; FRAME_BYTES], 0);
            while !ends.is_over() {
                let due = platform.now().after(TICK_NS);
                platform.sleep_until(due).await;
                platform.work(TICK_WORK_NS).await;
                // A page that was not read before, of a file without an end.
                let _ = engine.read(&file, at, &mut page).await;
                at += 3 * FRAME_BYTES as u64;
                ends.interacted(platform.now().since(due).saturating_sub(TICK_WORK_NS));
            }
        }
    }
}

/// Runs the load under the engine's own form of reclaim.
pub(super) fn run(load: &Load) -> Result<Outcome, String> {
    let world = load.world(costs(), load.order.afflux_ahead);
    let machine = HoleMachine::new(&world, load)?;
    let (tasks, files) = if load.start == Start::OneTask { (1, load.readers) } else { (load.readers, 1) };
    let ends = Arc::new(Ends::new(tasks));
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    world.spawn("interactive", machine.interact(&ends));
    let load_of_tasks = Load { readers: tasks, ..*load };
    let ran = world.run(async {
        let reader = |number| {
            let (read, ends) = (machine.read_files(files, load.file_bytes), Arc::clone(&ends));
            let (platform, failure) = (Arc::clone(&machine.platform), Arc::clone(&failure));
            async move {
                if let Err(error) = read.await {
                    lock(&failure).get_or_insert(error);
                }
                ends.reader_ended(number, platform.task_usage());
            }
        };
        start_readers(&load_of_tasks, &machine.platform, reader, || async {}).await;
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
        // The engine has no lists of other CPUs to drain.
        interrupts: Vec::new(),
        delays: machine.engine.reclaim_waits(),
        tasks,
        start_ns: started_ns,
        total_ns: machine.platform.now().0,
        interactive_ns: ends.interactive_ns(),
        preemptions: world.cpu_usage().preemptions,
        delays_by_device: Some(delays(&machine.engine, &[machine.device])),
    }
}
