//! The second part: the cost of the engine's policies on devices, with writers, flushers and readahead at work.
//!
//! Owns: the machine of this part and of the third, the clients that request a sequence's pages, the counts.
//! Does not own: the engine, the devices' models, the generators.
//! Invariants: all policies of a case see the same touches in the same order. As in any run, the flush budget limits
//! dirty pages, and the flusher writes them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_engine::counters::Counter;
use afflux_engine::eviction::EvictionKind;
use afflux_engine::{Error, File, Nanos, Platform};
use afflux_report::{Fields, Row};
use afflux_simulator::{
    CpuOptions, Disk, Memory, OWN_POLICY, Setup, SimMachine, SimPlatform, World, WorldOptions, catalogue,
};
use afflux_workloads::touches::{Generator, Sequence, Sizes};

use crate::delays::delays;
use crate::experiment::LabError;
use crate::machine::{PAGE_BYTES, laid_out, lock, model, row};
use crate::statistics::percentile;

/// Virtual CPUs.
const CPUS: usize = 4;
/// Clients, each with one page request at a time.
const CLIENTS: usize = 8;

struct Shared {
    engine: Arc<afflux_engine::Engine<SimPlatform>>,
    files: Vec<File>,
    sequence: Sequence,
    next: AtomicUsize,
    /// The counts at the end of the warm-up.
    warm: Mutex<Option<Counts>>,
    /// The times of reads since then.
    reads_ns: Mutex<Vec<u64>>,
    /// The result of each client that has ended.
    ended: Mutex<Vec<Result<(), Error>>>,
    disk: Arc<Disk>,
}

/// Counts from the start until an instant.
#[derive(Clone, Copy)]
struct Counts {
    at_ns: u64,
    busy_ns: u64,
    written_bytes: u64,
    values: [u64; 5],
}

const COUNTED: [Counter; 5] =
    [Counter::ReadMissPages, Counter::ReadHitPages, Counter::ThrottleNs, Counter::PagesDirtied, Counter::AllocStall];

/// Runs a policy on a device, with a generator and a cache size; returns the row.
pub(super) fn run(
    device: &str,
    generator: &Generator,
    sizes: Sizes,
    kind: EvictionKind,
    seed: u64,
) -> Result<Row, LabError> {
    let world = World::new(WorldOptions::machine(seed, CpuOptions::count(CPUS)));
    let machine = machine(&world, device, sizes.frames * PAGE_BYTES, kind, &[])?;
    let sequence = generator.sequence(sizes, seed);
    let (engine, disk) = (Arc::clone(&machine.engine), Arc::clone(&machine.disks[0]));
    let files = file_bytes(&sequence).map(|bytes| laid_out(&engine, machine.devices[0], &disk, bytes)).collect();
    let (next, warm, reads_ns, ended) = (AtomicUsize::new(0), Mutex::new(None), Mutex::default(), Mutex::default());
    let shared = Arc::new(Shared { engine, files, sequence, next, warm, reads_ns, ended, disk });
    for _ in 0..CLIENTS {
        world.spawn("client", client(Arc::clone(&shared)));
    }
    let ended_ns = world.run(shared.all_ended()).map_err(LabError::failed)?.map_err(LabError::failed)?;
    world.run(shared.sync()).map_err(LabError::failed)?.map_err(LabError::failed)?;
    let (cost, delays) = (shared.cost(ended_ns)?, delays(&shared.engine, &machine.devices));
    let params = Fields::new()
        .with("device", device)
        .with("generator", generator.name)
        .with("cache_part", sizes.pages / sizes.frames);
    Ok(row("eviction", kind.name, params, cost.with("delays", delays), Fields::new()))
}

/// An engine with this eviction policy over a disk of the catalogue.
pub(super) fn machine(
    world: &World,
    device: &str,
    memory_bytes: u64,
    kind: EvictionKind,
    knobs: &[&str],
) -> Result<SimMachine, LabError> {
    let setup = Setup::of(OWN_POLICY).map_err(LabError::failed)?.with_eviction(Some(kind));
    let setup = setup.with_knobs(knobs).map_err(LabError::failed)?;
    let mut machine = SimMachine::new(world, Memory::Stamped(memory_bytes), setup).map_err(LabError::failed)?;
    machine.add(device, catalogue::make(world, 0, &model(device, &[])?));
    Ok(machine)
}

/// The bytes of the sequence's files.
fn file_bytes(sequence: &Sequence) -> impl Iterator<Item = u64> {
    let ends = sequence.files.iter().skip(1).copied().chain([sequence.pages()]);
    sequence.files.iter().zip(ends).map(|(first, end)| u64::from(end.max(first + 1) - first) * PAGE_BYTES)
}

async fn client(shared: Arc<Shared>) {
    let result = ask(&shared).await;
    lock(&shared.ended).push(result);
}

/// Requests the next page of the shared sequence until none is left.
async fn ask(shared: &Shared) -> Result<(), Error> {
    let mut page = vec![0; PAGE_BYTES as usize];
    let warm = shared.sequence.touches.len() / 4;
    loop {
        let at = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(touch) = shared.sequence.touches.get(at) else { return Ok(()) };
        if at == warm {
            *lock(&shared.warm) = Some(shared.counts());
        }
        let number = shared.sequence.files.partition_point(|first| *first <= touch.page) - 1;
        let (file, first) = (&shared.files[number], shared.sequence.files[number]);
        let offset = u64::from(touch.page - first) * PAGE_BYTES;
        if touch.write {
            shared.engine.write(file, offset, &page).await?;
        } else {
            let began = shared.engine.platform().now();
            shared.engine.read(file, offset, &mut page).await?;
            if at >= warm {
                lock(&shared.reads_ns).push(shared.engine.platform().now().since(began));
            }
        }
        shared.engine.platform().preemption_point().await;
    }
}

impl Shared {
    fn counts(&self) -> Counts {
        let (figures, counters) = (self.disk.figures(), self.engine.platform().counters());
        Counts {
            at_ns: self.engine.platform().now().0,
            busy_ns: figures.busy_ns,
            written_bytes: figures.bytes.1,
            values: COUNTED.map(|counter| counters.get(counter)),
        }
    }

    /// Waits for all clients; returns the instant of the end, to a millisecond.
    async fn all_ended(&self) -> Result<u64, Error> {
        let platform = self.engine.platform();
        loop {
            let failed = lock(&self.ended).iter().find_map(|result| result.as_ref().err().cloned());
            if let Some(error) = failed {
                return Err(error);
            }
            if lock(&self.ended).len() == CLIENTS {
                return Ok(platform.now().0);
            }
            platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
        }
    }

    async fn sync(&self) -> Result<(), Error> {
        for file in &self.files {
            self.engine.sync(file, 0..u64::MAX).await?;
        }
        Ok(())
    }

    /// The mean cost of a request in the last three quarters of the touches. The writes of pages that are still dirty
    /// at their end count. Three costs are times: of the busy device, of the clients, of throttled writers. The others
    /// are the bytes written for each byte that became dirty, and the waits for a free frame.
    fn cost(&self, ended_ns: u64) -> Result<Fields, LabError> {
        let warm = lock(&self.warm).ok_or_else(|| LabError::failed("a sequence without touches"))?;
        let now = self.counts();
        let requests = (self.sequence.touches.len() - self.sequence.touches.len() / 4) as f64;
        let moved = |at: usize| (now.values[at] - warm.values[at]) as f64;
        let (misses, hits, dirtied) = (moved(0), moved(1), moved(3) * PAGE_BYTES as f64);
        let each = |ns: f64| ns / 1000.0 / requests;
        let mut reads_ns = std::mem::take(&mut *lock(&self.reads_ns));
        reads_ns.sort_unstable();
        let written = (now.written_bytes - warm.written_bytes) as f64;
        Ok(Fields::new()
            .with("device_us", each((now.busy_ns - warm.busy_ns) as f64))
            .with("client_us", each((ended_ns - warm.at_ns) as f64 * CLIENTS as f64))
            .with("read_p99_us", percentile(&reads_ns, 990) as f64 / 1000.0)
            .with("held_back_us", each(moved(2)))
            .with("hit_ratio", hits / (hits + misses).max(1.0))
            .with("written_per_dirtied", if dirtied > 0.0 { written / dirtied } else { 0.0 })
            .with("allocstall_per_request", moved(4) / requests))
    }
}
