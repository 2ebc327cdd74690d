//! The measured side: the real engine over a throttled disk of this machine.
//!
//! Owns: looks at the engine while it runs.
//! Does not own: the slow disk (`hardware`), the engine over it (`contenders`), the jobs (`workloads`).
//! Invariants: files to be read are laid out before the throttle is set; a run removes its files.

use std::fs::{self, File as HostStdFile, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_engine::{Backing, Engine};
use afflux_linux_device::{HostFile, LinuxPlatform};
use afflux_simulator::EQUAL_PARTS_POLICY;
use afflux_workloads::EngineRun;

use super::compare::{Look, Side};
use super::plan::{Group, Rate};
use super::simulated::SEED;
use crate::contenders::{EngineSetup, Ours};
use crate::delays::delays_by_caller;
use crate::experiment::LabError;
use crate::hardware::{DiskRates, SlowDisk};

/// Time between two looks at the engine.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Reads that measure the host's latency.
const LATENCY_READS: u64 = 200;
/// The range of these reads.
const LATENCY_BYTES: u64 = 32 << 20;
/// Bytes of one write when files are laid out.
const LAY_OUT_BYTES: usize = 1 << 20;

fn failed(what: &str, error: &dyn std::fmt::Display) -> LabError {
    LabError::Failed(format!("{what}: {error}"))
}

/// An engine over a directory, with the policy of the simulated one.
fn ours(directory: &Path, memory_bytes: u64) -> Result<Ours, LabError> {
    let setup = EngineSetup { policy: EQUAL_PARTS_POLICY.to_owned(), knobs: Vec::new(), memory_bytes };
    Ours::new(&setup, &[directory]).map_err(LabError::Failed)
}

/// Bytes that the disk has written so far.
fn written_bytes(disk: &SlowDisk) -> u64 {
    let text = fs::read_to_string(format!("/sys/block/{}/stat", disk.name())).unwrap_or_default();
    let sectors = text.split_whitespace().nth(6).and_then(|field| field.parse::<u64>().ok());
    sectors.unwrap_or(0) * 512
}

/// Makes a file of `bytes`, all of them written.
fn lay_out(path: &Path, bytes: u64) -> std::io::Result<HostStdFile> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    let block = vec![0x5a; LAY_OUT_BYTES];
    let mut left = bytes;
    while left > 0 {
        let len = left.min(LAY_OUT_BYTES as u64);
        file.write_all(&block[..len as usize])?;
        left -= len;
    }
    file.sync_all()?;
    Ok(file)
}

/// The time of a request without a throttle, in nanoseconds: the mean of reads of a page, one at a time, by the real
/// engine. It includes the host's other load.
pub(super) fn latency_ns(disk: &SlowDisk) -> Result<u64, LabError> {
    disk.throttle(DiskRates::default()).map_err(|error| failed("throttle", &error))?;
    let path = disk.path().join("latency");
    let host = lay_out(&path, LATENCY_BYTES).map_err(|error| failed("the slow disk", &error))?;
    let ours = ours(disk.path(), 2 * LATENCY_BYTES)?;
    let (engine, platform) = (&ours.engine, &ours.platform);
    let file = engine.open(ours.device(), Backing::new(Arc::new(HostFile::new(host.into()))), LATENCY_BYTES);
    let (mut page, pages, mut sum_ns) = (vec![0; 4096], LATENCY_BYTES / 4096, 0);
    for at in 0..LATENCY_READS {
        // A stride that visits no page twice, and that readahead does not take for a stream.
        let offset = at * 4099 % pages * 4096;
        let began = Instant::now();
        platform.block_on(engine.read(&file, offset, &mut page)).map_err(|error| failed("a read", &error))?;
        sum_ns += began.elapsed().as_nanos() as u64;
    }
    let _ = fs::remove_file(&path);
    Ok(sum_ns / LATENCY_READS)
}

/// Runs the jobs of a group on an engine of their own.
pub(super) fn run(group: &Group, rate: &Rate, memory_bytes: u64, disk: &SlowDisk) -> Result<Side, LabError> {
    disk.throttle(DiskRates::default()).map_err(|error| failed("throttle", &error))?;
    let root = disk.path().join(&group.name);
    fs::create_dir_all(&root).map_err(|error| failed("the slow disk", &error))?;
    let result = run_in(group, rate, memory_bytes, disk, &root);
    let _ = disk.throttle(DiskRates::default());
    let _ = fs::remove_dir_all(&root);
    result
}

fn run_in(group: &Group, rate: &Rate, memory_bytes: u64, disk: &SlowDisk, root: &Path) -> Result<Side, LabError> {
    let ours = ours(root, memory_bytes)?;
    let (engine, platform, id) = (&ours.engine, &ours.platform, ours.device());
    let open = |path: &str, bytes: u64| {
        let host = lay_out(&root.join(path.trim_start_matches('/')), bytes).map_err(|error| error.to_string())?;
        Ok(engine.open(id, Backing::new(Arc::new(HostFile::new(host.into()))), bytes))
    };
    let run = EngineRun::new(engine, &group.jobs, SEED, &open).map_err(LabError::Failed)?;
    // Writes of the file system itself must not count.
    disk.settle().map_err(|error| failed("sync", &error))?;
    let rates = DiskRates { read_bytes_per_s: Some(rate.bytes_per_s), write_bytes_per_s: Some(rate.bytes_per_s) };
    disk.throttle(rates).map_err(|error| failed("throttle", &error))?;
    let before = written_bytes(disk);
    let limit_bytes = engine.status().devices.first().map_or(0, |device| device.dirty_limit_bytes);
    let (jobs, looks) = watched(platform, engine, run);
    platform.block_on(engine.drain(id));
    let delays = delays_by_caller(engine, id);
    Ok(Side { jobs, looks, limit_bytes, disk_bytes: written_bytes(disk) - before, delays })
}

/// Runs the jobs, with looks at the engine meanwhile.
fn watched(
    platform: &LinuxPlatform,
    engine: &Arc<Engine<LinuxPlatform>>,
    run: EngineRun<LinuxPlatform>,
) -> (Vec<afflux_workloads::simulation::JobOutcome>, Vec<Look>) {
    let (handle, over) = (run.handle(), AtomicBool::new(false));
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (start, mut looks) = (Instant::now(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let dirty_bytes = engine.status().dirty_bytes;
                let accepted_bytes = handle.accepted_bytes();
                looks.push(Look { at_s: start.elapsed().as_secs_f64(), dirty_bytes, accepted_bytes });
                thread::sleep(LOOK_EVERY);
            }
            looks
        });
        let jobs = platform.block_on(run.run());
        over.store(true, Ordering::Relaxed);
        (jobs, watcher.join().unwrap_or_default())
    })
}
