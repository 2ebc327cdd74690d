//! How much does background writeback get while a writer that waits for requests keeps the queue congested?
//!
//! The rival writes dirty pages of the disk in slices of 4 MiB and waits for each request it needs, as a direct writer
//! or fsync does. Beside it, pages are written back by a pdflush pool, which leaves a congested queue, or by a flusher,
//! which waits as well. All are made of the engine's own steps ([`afflux_engine::old_kernels::Flush`]).
//!
//! Owns: the case, the rival, the flusher beside it. Does not own: the pool (`linux-policies`).
//! Invariants: no writer is throttled: all pages are dirty before writing begins, and enough for all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_engine::old_kernels::{Boxed, Flush, OldKernel, PutBack, RunEnd};
use afflux_engine::settings::PageKnob;
use afflux_engine::{DeviceId, Nanos};
use afflux_report::{Fields, Row};

use super::machines::{Variant, submission_costs};
use super::options::SharedOptions;
use crate::experiment::{LabError, Watch};
use crate::machine::{ExperimentMachine, MachineOptions, Queue, Span, queued_model, rounded, row};

const CPUS: usize = 4;
const MEMORY_BYTES: u64 = 8 << 30;
const SLICE_PAGES: u64 = 1024;
const FILES: u64 = 8;
const FILE_BYTES: u64 = 256 << 20;
const CPU_MS_PER_MB: f64 = 1.0;
const COUNTED_S: u64 = 15;
/// Time between two looks of a task that found nothing to write.
const IDLE_NS: u64 = Nanos::MILLISECOND;

/// The writeback that runs beside the rival.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RivalWriteback {
    Pool,
    BlockingFlusher,
}

/// A kernel with the rival in it.
struct WithRival {
    pool: Option<Arc<dyn OldKernel>>,
    started: Arc<AtomicBool>,
}

/// Waits for its start, then writes slices of the next file and waits for requests.
async fn write_blocking(flush: Arc<dyn Flush>, started: Arc<AtomicBool>) {
    loop {
        let mut idle = true;
        if started.load(Ordering::Relaxed) {
            for device in flush.devices() {
                idle &= write_slice(&*flush, device).await == 0;
            }
        }
        if idle {
            flush.sleep(IDLE_NS).await;
        }
    }
}

async fn write_slice(flush: &dyn Flush, device: DeviceId) -> u64 {
    let Some(mut taken) = flush.take_file(device, None) else { return 0 };
    let mut written = 0;
    while written < SLICE_PAGES {
        match flush.write_run(&mut taken, SLICE_PAGES - written, true).await {
            RunEnd::Pages(pages) => written += pages,
            RunEnd::Congested | RunEnd::Nothing => break,
        }
    }
    flush.put_back(taken, PutBack::More);
    written
}

impl OldKernel for WithRival {
    fn has_own_threads(&self) -> bool {
        true
    }

    fn start(&self, flush: Arc<dyn Flush>) {
        let task = |name| {
            let writing: Boxed<'static, ()> = Box::pin(write_blocking(Arc::clone(&flush), Arc::clone(&self.started)));
            flush.spawn(name, writing);
        };
        task("rival");
        match &self.pool {
            Some(pool) => pool.start(Arc::clone(&flush)),
            None => task("blocking flusher"),
        }
    }

    fn kick(&self, flush: Arc<dyn Flush>) {
        if let Some(pool) = &self.pool {
            pool.kick(flush);
        }
    }
}

/// With `rival`, the rival starts once the pool is at work, and so does a flusher beside it. Without it the pool has
/// the disk alone.
fn run_one(beside: RivalWriteback, rival: bool, queue: Queue, seed: u64) -> Result<Row, LabError> {
    let variant = &Variant::PDFLUSH;
    let mut setup = variant.setup()?;
    let started = Arc::new(AtomicBool::new(false));
    let pool = setup.policies.old_kernel.filter(|_| beside == RivalWriteback::Pool);
    setup.policies.old_kernel = Some(Arc::new(WithRival { pool, started: Arc::clone(&started) }));
    let machine = ExperimentMachine::without_flushes(MachineOptions {
        seed,
        cpus: CPUS,
        costs: submission_costs(CPU_MS_PER_MB),
        memory_bytes: MEMORY_BYTES,
        setup,
        knobs: vec![
            "dirty_ratio=80".to_owned(),
            "dirty_background_ratio=70".to_owned(),
            "dirty_expire_centisecs=360000".to_owned(),
        ],
        disks: vec![queued_model("disk-82", queue)?],
        queue,
    })?;
    let writers: Vec<_> = (0..FILES).map(|_| machine.stream(&machine.file(0).0, FILE_BYTES, 64 << 10)).collect();
    machine.until_ended(&writers, 100 * Nanos::MILLISECOND)?;
    // From now on too much is dirty, and the next writer that has used up its allowance reports it. The rival starts
    // when the pool is at work.
    let knob = machine.engine.set_knob(PageKnob::BackgroundRatio, 1);
    knob.map_err(|error| LabError::Failed(error.to_string()))?;
    machine.stream(&machine.file(0).0, 64 << 20, 64 << 10);
    machine.sleep(Nanos::SECOND)?;
    started.store(rival, Ordering::Relaxed);
    machine.sleep(Nanos::SECOND)?;
    let from = machine.tally();
    machine.sleep(COUNTED_S * Nanos::SECOND)?;
    let to = machine.tally();
    let span = Span::between(&from, &to);
    let (name, tasks) = match beside {
        RivalWriteback::Pool => (variant.name, "pdflush"),
        RivalWriteback::BlockingFlusher => ("blocking-flusher", "blocking flusher"),
    };
    let params = Fields::new()
        .with("case", "blocking-rival")
        .with("nr_requests", queue.nr_requests)
        .with("request_kib", queue.request_kib)
        .with("request_batch", queue.batch)
        .with("seed", seed);
    let metrics = span
        .metrics(queue.nr_requests)
        .with("share_beside_rival", rounded(span.share_of_tasks(tasks), 4))
        .with("share_of_rival", rounded(span.share_of_tasks("rival"), 4))
        .with("engine", span.engine());
    Ok(row("s1", name, params, metrics, Fields::new()))
}

/// The case, for the experiment.
pub(super) fn run(common: &SharedOptions, watch: &mut dyn Watch) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for nr_requests in [128, 2048] {
        for beside in [RivalWriteback::Pool, RivalWriteback::BlockingFlusher] {
            watch.step("blocking-rival", rows.len() as f64 / 4.0);
            let row = run_one(beside, true, common.queue(nr_requests, common.request_kib.unwrap_or(64)), common.seed)?;
            watch.row(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
