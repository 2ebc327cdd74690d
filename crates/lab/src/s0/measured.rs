//! What one decision costs on this machine, alone and while two threads keep the counters moving.
//!
//! The engine runs on real threads over a device that completes writes at once, so that the counters change
//! as fast as they can: two threads dirty pages of a file each and have them written. A third takes the
//! engine's snapshot and has a law decide from it, as a writer does whose allowance is used up. The engine
//! reads each shared counter once a snapshot, whatever the law: how often a law then asks costs arithmetic
//! only. That is the difference to the kernels' code, and why the variants hardly differ here.
//!
//! Owns: the measurement. Does not own: the laws, the snapshot.
//! Invariants: threads end before this returns; a figure is the median of rounds.

use std::any::Any;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use engine::settings::Settings;
use engine::throttle::{AnyLaw, Driver, Policies, Throttle};
use engine::{Backing, Device, Engine, File, Flush, FlushDriver, Limits, Request};
use frames::Frames;
use linux_policies::policy;
use platform_linux::{IoChoice, LinuxPlatform, Reactors};
use report::{Fields, Row, Source};

use crate::experiment::{LabError, Watch};
use crate::machine::rounded;

const ROUNDS: usize = 21;
const DECISIONS: u32 = 2_000;
const FILE_PAGES: u64 = 256;
const PAGE_BYTES: u64 = 4096;

/// Completes everything at once.
struct AtOnce(Limits);

impl Device for AtOnce {
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

/// Writes nothing; keeps what takes snapshots.
#[derive(Default)]
struct Snapshots(OnceLock<Arc<dyn Flush>>);

impl FlushDriver for Snapshots {
    fn start(&self, flush: Arc<dyn Flush>) {
        let _ = self.0.set(flush);
    }

    fn kick(&self, _: Arc<dyn Flush>) {}
}

/// The median of nanoseconds for a snapshot and a decision.
fn decision_ns(flush: &dyn Flush, law: &dyn AnyLaw) -> f64 {
    let (mut task, mut device, mut shared) = (law.new_task(), law.new_device(), law.new_shared());
    let mut pace = law.start(flush.view().memory_pages, 2);
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..DECISIONS {
                let view = flush.view();
                let memory: [&mut dyn Any; 3] = [&mut *task, &mut *device, &mut *shared];
                let [task, device, shared] = memory;
                black_box(law.decide(&view, task, device, shared, &mut pace));
            }
            began.elapsed().as_nanos() as f64 / f64::from(DECISIONS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Dirties the file and has it written, again and again.
fn hammer(platform: &LinuxPlatform, engine: &Arc<Engine<LinuxPlatform>>, file: &File, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for page in 0..FILE_PAGES {
            // An error here would be one of the device, which has none.
            let _ = platform.block_on(engine.write(file, page * PAGE_BYTES, &[7; PAGE_BYTES as usize]));
        }
        let _ = platform.block_on(engine.sync(file, 0..u64::MAX));
    }
}

pub(super) fn measure(variants: &[&'static str], watch: &mut dyn Watch) -> Result<Vec<Row>, LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    let reactors = Reactors::start(1, IoChoice::Syscalls).map_err(|error| failed(&error))?;
    let platform = reactors.platform();
    let snapshots = Arc::new(Snapshots::default());
    let driver = Driver::Own(Arc::clone(&snapshots) as Arc<dyn FlushDriver>);
    let policies = Policies { throttle: Throttle::EqualParts, driver };
    let frames = Frames::new(64 << 20).map_err(|error| failed(&error))?;
    let engine = Engine::with_policies(Arc::new(platform.clone()), Settings::new(), frames, policies);
    let limits = Limits { block_bytes: 4096, request_bytes_max: 1 << 20, depth: 64, volatile_cache: false };
    let device = engine.add_device("at once", Arc::new(AtOnce(limits)));
    let flush =
        snapshots.0.get().ok_or_else(|| LabError::Failed("the engine has not started its driver".to_owned()))?;
    let files = [0; 2].map(|_| engine.open(device, Backing::new(Arc::new(())), 0));
    let mut rows = Vec::new();
    for threads in [0, 2] {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for file in files.iter().take(threads) {
                scope.spawn(|| hammer(&platform, &engine, file, &stop));
            }
            let measured = measure_all(variants, threads, &**flush, watch);
            stop.store(true, Ordering::Relaxed);
            measured.map(|measured| rows.extend(measured))
        })?;
    }
    files.iter().for_each(|file| engine.discard(file));
    Ok(rows)
}

fn measure_all(
    variants: &[&'static str],
    threads: usize,
    flush: &dyn Flush,
    watch: &mut dyn Watch,
) -> Result<Vec<Row>, LabError> {
    let mut rows = Vec::new();
    for variant in variants {
        watch.step(&format!("{variant}: a decision beside {threads} threads"), 0.99);
        let policy = policy(variant).map_err(|error| LabError::Failed(error.to_string()))?;
        let Throttle::Law(law) = policy.policies.throttle else { continue };
        let row = Row {
            experiment: "s0".to_owned(),
            variant: (*variant).to_owned(),
            params: Fields::new().with("threads_beside", threads),
            metrics: Fields::new().with("decision_ns_median", rounded(decision_ns(flush, &*law), 1)),
            published: Fields::new(),
            source: Source::Measured,
        };
        watch.row(&row);
        rows.push(row);
    }
    Ok(rows)
}
