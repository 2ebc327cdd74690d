//! A writer on the kernel's own page cache, over a throttled disk of this machine.
//!
//! Owns: the writer, the kernel's dirty counts meanwhile, the knobs of the device and of the machine.
//! Does not own: the slow disk (`hardware`), the comparison.
//! Invariants: the kernel knows nothing of the device when the writer begins. The throttle is lifted after the sync, so
//! that the rest is written at once. A run restores all knobs.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::compare::Look;
use super::plan::Rate;
use super::surroundings::{BEFORE_S, MachineSample, Surroundings, limit_and_written, tick_rate};
use super::written::{BLOCK_BYTES, Form, Written};
use crate::experiment::LabError;
use crate::hardware::{DirtyLimits, DiskRates, KernelDebug, SlowDisk, free_bytes};
use crate::host_memory::{Dirty, warm_memory};
use crate::statistics::percentile;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Bytes to leave free on the file system with the image.
const SPARE_BYTES: u64 = 3 << 30;
/// Largest image.
const IMAGE_BYTES_MAX: u64 = 8 << 30;
/// Bytes of an image that the file system keeps for itself.
const SPARE_OF_IMAGE_BYTES: u64 = 200 << 20;
/// Most writes with recorded times: those of ten minutes at 1 GB/s.
const WRITES_MAX: usize = 10_000_000;

/// The records of the writer.
struct Times {
    looks: Vec<Look>,
    /// The start of each write since the first, and its duration.
    times: Vec<(Duration, Duration)>,
    sync_ns: u64,
}

impl Times {
    /// The figures of writes from `instant` on, after memory has filled.
    fn from(self, instant: Duration) -> Written {
        let late = self.times.iter().filter(|(began, _)| *began >= instant);
        let mut times_ns: Vec<u64> = late.map(|(_, took)| took.as_nanos() as u64).collect();
        times_ns.sort_unstable();
        Written {
            looks: self.looks,
            p99_ns: percentile(&times_ns, 990),
            max_ns: times_ns.last().copied().unwrap_or(0),
            sync_ns: self.sync_ns,
            delays: None,
        }
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> LabError {
    LabError::Failed(format!("{what}: {error}"))
}

/// Writes for `seconds`, then syncs.
pub(super) fn run(
    form: &Form,
    rate: &Rate,
    seconds: u64,
    directory: &Path,
) -> Result<(Written, Surroundings), LabError> {
    let hz = tick_rate()?;
    let set = |(bytes, background)| DirtyLimits::set(bytes, background);
    let limits = form.limit_bytes.map(set).transpose().map_err(|error| failed("the machine's limits", &error))?;
    let filling = if form.max_bytes > 0 { form.max_bytes } else { limit_and_written()?.0 };
    let image_bytes = (filling + 3 * seconds * rate.bytes_per_s + (256 << 20)).next_multiple_of(1 << 20);
    let free = free_bytes(directory).map_err(|error| failed("free space", &error))?;
    if image_bytes > IMAGE_BYTES_MAX || image_bytes + SPARE_BYTES > free {
        let what = format!("the disk would need {image_bytes} bytes (at most {IMAGE_BYTES_MAX}, and {free} are free)");
        return Err(LabError::Failed(what));
    }
    let disk = SlowDisk::fresh(directory, image_bytes, DiskRates::default()).map_err(|error| failed("disk", &error))?;
    if form.max_bytes > 0 {
        disk.limit_dirty(Some(form.max_bytes)).map_err(|error| failed("the device's limit", &error))?;
    }
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(rate.bytes_per_s) };
    let path = disk.path().join("stream");
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let file = file.map_err(|error| failed("the slow disk", &error))?;
    disk.settle().and_then(|()| disk.throttle(rates)).map_err(|error| failed("throttle", &error))?;
    let debug = KernelDebug::new(directory).ok();
    let dirty = Dirty::of(disk.number(), debug.as_ref());
    let written = write(&file, seconds, &dirty, image_bytes, filling);
    disk.throttle(DiskRates::default()).map_err(|error| failed("throttle", &error))?;
    drop(limits);
    let (written, around) = written.map_err(|error| failed("the writer", &error))?;
    let surroundings = Surroundings::of(&around, &written.looks, seconds, hz);
    Ok((written.from(surroundings.filling()), surroundings))
}

/// Looks until `over` is set; times are since `began`.
fn watch(dirty: &Dirty, accepted: &AtomicU64, over: &AtomicBool, began: Instant) -> (Vec<Look>, Vec<MachineSample>) {
    let (mut looks, mut around) = (Vec::new(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let at_s = began.elapsed().as_secs_f64();
        let (dirty_bytes, own_bytes) = dirty.bytes();
        looks.push(Look { at_s, dirty_bytes, accepted_bytes: accepted.load(Ordering::Relaxed) });
        let found = limit_and_written();
        let asleep = Instant::now();
        thread::sleep(LOOK_EVERY);
        let late_ns = asleep.elapsed().saturating_sub(LOOK_EVERY).as_nanos() as u64;
        if let Ok((dirty_limit_bytes, all_bytes)) = found {
            // If the device's own count is unknown, the others' bytes are unknown, too.
            let others_bytes = own_bytes.map_or(0, |own_bytes| all_bytes.saturating_sub(own_bytes));
            around.push(MachineSample { at_s, dirty_limit_bytes, others_bytes, late_ns });
        }
    }
    (looks, around)
}

fn write(
    file: &File,
    seconds: u64,
    dirty: &Dirty,
    bytes_max: u64,
    filling: u64,
) -> std::io::Result<(Times, Vec<MachineSample>)> {
    let (accepted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let began = Instant::now();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(dirty, &accepted, &over, began));
        thread::sleep(Duration::from_secs(BEFORE_S));
        warm_memory(filling);
        let start = Instant::now();
        let result = stream(file, start, Duration::from_secs(seconds), bytes_max, &accepted);
        over.store(true, Ordering::Relaxed);
        let (mut looks, mut around) = watcher.join().unwrap_or_default();
        let (times, sync_ns) = result?;
        let start_s = start.duration_since(began).as_secs_f64();
        looks.iter_mut().for_each(|look| look.at_s -= start_s);
        looks.retain(|look| look.at_s >= 0.0);
        around.iter_mut().for_each(|around| around.at_s -= start_s);
        Ok((Times { looks, times, sync_ns }, around))
    })
}

fn stream(
    file: &File,
    start: Instant,
    time: Duration,
    bytes_max: u64,
    accepted: &AtomicU64,
) -> std::io::Result<(Vec<(Duration, Duration)>, u64)> {
    let (block, mut offset, mut times) = (vec![0x5a; BLOCK_BYTES as usize], 0, Vec::new());
    while start.elapsed() < time && offset < bytes_max - SPARE_OF_IMAGE_BYTES && times.len() < WRITES_MAX {
        let began = Instant::now();
        file.write_all_at(&block, offset)?;
        times.push((began.duration_since(start), began.elapsed()));
        offset += BLOCK_BYTES;
        accepted.store(offset, Ordering::Relaxed);
    }
    let began = Instant::now();
    file.sync_all()?;
    Ok((times, began.elapsed().as_nanos() as u64))
}
