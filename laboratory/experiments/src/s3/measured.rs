//! The measured part of s3: the real engine, a thread for each reader, and a small cache.
//!
//! Owns: the threads, the figures. Does not own: reclaim (`engine`), the form of figures (`findings`).
//! Invariants: nothing is simulated. Files are holes, like the seed's, so that no wait for a disk hides the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, DeviceId, Engine, Limits, Platform, WaitTimes};
use afflux_frames::{FRAME_BYTES, Frames};
use afflux_linux::{IoChoice, LinuxPlatform, Reactors};
use afflux_report::{Fields, Row, Source};
use rustix::time::{ClockId, clock_gettime};

use super::own::Holes;
use super::plan::{OWN, Plan};
use crate::experiment::{LabError, Watch};
use crate::machine::rounded;

const CACHE_BYTES: u64 = 256 << 20;
const FILE_BYTES: u64 = 16 << 20;
const FILE_BYTES_QUICK: u64 = 2 << 20;
/// The kernel's size, so that the readahead of a thousand readers fits into the cache.
const READAHEAD: &str = "readahead_bytes_max=131072";
const CALL_BYTES: usize = 8 * FRAME_BYTES;
/// Readers do little but copy, and a thousand stacks of the usual size would be larger than the cache.
const STACK_BYTES: usize = 256 << 10;
const TICK: Duration = Duration::from_millis(100);
const TICK_WORK: Duration = Duration::from_millis(1);

/// The results of a measured run.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) readers: usize,
    pub(super) file_bytes: u64,
    pub(super) cache_bytes: u64,
    pub(super) cpus: usize,
    pub(super) stalls: u64,
    pub(super) demand_failures: u64,
    pub(super) ahead_failures: u64,
    pub(super) waits: WaitTimes,
    pub(super) seconds: f64,
    pub(super) interactive_ms: f64,
}

impl Measured {
    pub(super) fn mb_per_s(&self) -> f64 {
        self.readers as f64 * self.file_bytes as f64 / 1e6 / self.seconds
    }

    fn row(&self) -> Row {
        let waits = &self.waits;
        let average_ns = waits.ns.checked_div(waits.count).unwrap_or(0);
        Row {
            experiment: "s3".to_owned(),
            variant: OWN.to_owned(),
            params: Fields::new()
                .with("readers", self.readers)
                .with("file_bytes", self.file_bytes)
                .with("memory_bytes", self.cache_bytes)
                .with("cpus", self.cpus),
            metrics: Fields::new()
                .with("demand_alloc_fail", self.demand_failures)
                .with("nr_alloc_fail", self.ahead_failures)
                .with("allocstall", self.stalls)
                .with("function_call_ipis", 0)
                .with("reclaim_count_mean", rounded(waits.count as f64 / self.readers as f64, 2))
                .with("reclaim_total_ms_mean", rounded(waits.ns as f64 / 1e6 / self.readers as f64, 3))
                .with("reclaim_delay_ms_avg", rounded(average_ns as f64 / 1e6, 4))
                .with("reclaim_delay_ms_p99", rounded(waits.p99_ns as f64 / 1e6, 4))
                .with("reclaim_delay_ms_max", rounded(waits.max_ns as f64 / 1e6, 3))
                .with("total_s", rounded(self.seconds, 2))
                .with("mb_per_s", rounded(self.mb_per_s(), 1))
                .with("interactive_wait_ms_avg", rounded(self.interactive_ms, 2)),
            published: Fields::new(),
            source: Source::Measured,
        }
    }
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Failed(error.to_string())
}

/// Runs the measured part.
pub(super) fn run(plan: &Plan, quick: bool, watch: &mut dyn Watch) -> Result<Measured, LabError> {
    let (readers, file_bytes) = (plan.load.readers, if quick { FILE_BYTES_QUICK } else { FILE_BYTES });
    watch.step(&format!("measured: {readers} threads"), 0.9);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let reactors = Reactors::start(1, IoChoice::Syscalls).map_err(failed)?;
    let platform = reactors.platform().clone();
    let mut settings = Settings::new();
    settings.set_text(READAHEAD).map_err(failed)?;
    let frames = Frames::new(CACHE_BYTES).map_err(failed)?;
    let engine = Engine::new(Arc::new(platform.clone()), settings, frames);
    let limits = Limits { request_bytes_max: 1 << 20, depth: 1024, volatile_cache: false, ..Limits::default() };
    let device = engine.add_device("holes", Arc::new(Holes(limits)));
    let left = AtomicUsize::new(readers);
    let began = Instant::now();
    let (errors, interactive) = std::thread::scope(|scope| {
        let interactive = scope.spawn(|| interact(&platform, &engine, device, &left));
        let reader = || {
            let read = read_file(&platform, &engine, device, file_bytes);
            left.fetch_sub(1, Ordering::Relaxed);
            read
        };
        let started: Vec<_> = (0..readers)
            .map(|_| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, reader))
            .inspect(|started| _ = started.is_err().then(|| left.fetch_sub(1, Ordering::Relaxed)))
            .collect();
        let ended = started.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err("a reader panicked".to_owned())),
            Err(error) => Err(format!("a thread could not be started: {error}")),
        });
        let errors: Vec<String> = ended.filter_map(Result::err).collect();
        (errors, interactive.join().unwrap_or_default())
    });
    let seconds = began.elapsed().as_secs_f64();
    if let Some(error) = errors.into_iter().next() {
        return Err(LabError::Failed(error));
    }
    let counted = |counter: Counter| platform.counters().sum()[counter as usize];
    let interactive_ms = interactive.iter().map(|wait| wait.as_secs_f64() * 1e3).sum::<f64>();
    let measured = Measured {
        readers,
        file_bytes,
        cache_bytes: CACHE_BYTES,
        cpus,
        stalls: counted(Counter::AllocStall),
        demand_failures: counted(Counter::DemandAllocFail),
        ahead_failures: counted(Counter::AllocFail),
        waits: engine.reclaim_waits(),
        seconds,
        interactive_ms: interactive_ms / interactive.len().max(1) as f64,
    };
    watch.row(&measured.row());
    Ok(measured)
}

fn read_file(
    platform: &LinuxPlatform,
    engine: &Arc<Engine<LinuxPlatform>>,
    device: DeviceId,
    bytes: u64,
) -> Result<(), String> {
    let file = engine.open(device, Backing::new(Arc::new(())), bytes);
    let mut into = vec![0; CALL_BYTES];
    let mut at = 0;
    while at < bytes {
        let read = platform.block_on(engine.read(&file, at, &mut into));
        at += read.map_err(|error| error.to_string())? as u64;
    }
    Ok(())
}

/// Ten times a second, does a millisecond of work and reads a page, until all readers have ended. Returns how much
/// longer than its work each time took.
fn interact(
    platform: &LinuxPlatform,
    engine: &Arc<Engine<LinuxPlatform>>,
    device: DeviceId,
    left: &AtomicUsize,
) -> Vec<Duration> {
    let file = engine.open(device, Backing::new(Arc::new(())), 1 << 40);
    let mut page = [0; FRAME_BYTES];
    let mut waits = Vec::new();
    while left.load(Ordering::Relaxed) > 0 {
        let due = Instant::now() + TICK;
        std::thread::sleep(TICK);
        let until = cpu_time() + TICK_WORK;
        while cpu_time() < until {}
        // The file has no disk that could fail.
        let _ = platform.block_on(engine.read(&file, waits.len() as u64 * 3 * FRAME_BYTES as u64, &mut page));
        waits.push((Instant::now() - due).saturating_sub(TICK_WORK));
    }
    waits
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
