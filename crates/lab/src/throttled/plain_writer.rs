//! A writer on the kernel's own page cache, over a throttled disk of this machine.
//!
//! Owns: the writer, what the kernel says of dirty bytes meanwhile, the device's knobs in /sys.
//! Does not own: the slow disk (`hardware`), what is compared.
//! Invariants: the throttle is lifted after the sync, and with it what is left is written at once.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::compare::Look;
use super::kernel::{BLOCK_BYTES, Form};
use super::plan::Rate;
use crate::experiment::LabError;
use crate::hardware::{DiskRates, KernelDebug, SlowDisk, free_bytes};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is left free on the file system that holds the image.
const SPARE_BYTES: u64 = 3 << 30;
/// Most of an image.
const IMAGE_BYTES_MAX: u64 = 8 << 30;
/// What of an image a file cannot have: the file system's own.
const SPARE_OF_IMAGE_BYTES: u64 = 200 << 20;
/// Most writes whose times are kept: those of ten minutes at 1 GB/s.
const WRITES_MAX: usize = 10_000_000;

/// What a writer got.
pub(super) struct Written {
    pub(super) looks: Vec<Look>,
    pub(super) p99_ns: u64,
    pub(super) max_ns: u64,
    pub(super) sync_ns: u64,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> LabError {
    LabError::Failed(format!("{what}: {error}"))
}

/// The first number on the line that begins with this.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What the kernel lets be dirty on the whole machine, in bytes.
pub(super) fn dirty_threshold_bytes() -> Result<u64, LabError> {
    let text = fs::read_to_string("/proc/vmstat").map_err(|error| failed("/proc/vmstat", &error))?;
    let pages = field(&text, "nr_dirty_threshold ");
    pages.map(|pages| pages * 4096).ok_or_else(|| LabError::Failed("/proc/vmstat has no nr_dirty_threshold".to_owned()))
}

/// Where dirty bytes are looked up.
enum Dirty {
    /// The device's own, in this file of debugfs.
    Device(PathBuf),
    /// All of the machine's less so many.
    Machine(u64),
}

fn machine_dirty() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    (field(&text, "Dirty:").unwrap_or(0) + field(&text, "Writeback:").unwrap_or(0)) * 1024
}

impl Dirty {
    fn of(disk: &SlowDisk, debug: Option<&KernelDebug>) -> Self {
        let path = debug.map(|debug| debug.path().join("bdi").join(disk.number()).join("stats"));
        path.filter(|path| path.exists()).map_or_else(|| Self::Machine(machine_dirty()), Self::Device)
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Machine(before) => machine_dirty().saturating_sub(*before),
            Self::Device(path) => {
                let text = fs::read_to_string(path).unwrap_or_default();
                (field(&text, "BdiWriteback:").unwrap_or(0) + field(&text, "BdiReclaimable:").unwrap_or(0)) * 1024
            }
        }
    }
}

/// Writes for so many seconds, then syncs.
pub(super) fn run(form: &Form, rate: &Rate, seconds: u64, directory: &Path) -> Result<Written, LabError> {
    let filling = if form.max_bytes > 0 { form.max_bytes } else { dirty_threshold_bytes()? };
    let image_bytes = (filling + 2 * seconds * rate.bytes_per_s + (256 << 20)).next_multiple_of(1 << 20);
    let free = free_bytes(directory).map_err(|error| failed("free space", &error))?;
    if image_bytes > IMAGE_BYTES_MAX || image_bytes + SPARE_BYTES > free {
        let what = format!("the disk would need {image_bytes} bytes (at most {IMAGE_BYTES_MAX}, and {free} are free)");
        return Err(LabError::Failed(what));
    }
    let disk = SlowDisk::new(directory, image_bytes, DiskRates::default()).map_err(|error| failed("disk", &error))?;
    let limit = (form.max_bytes > 0).then_some(form.max_bytes);
    disk.limit_dirty(limit).map_err(|error| failed("the device's limit", &error))?;
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(rate.bytes_per_s) };
    let path = disk.path().join("stream");
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let file = file.map_err(|error| failed("the slow disk", &error))?;
    disk.settle().and_then(|()| disk.throttle(rates)).map_err(|error| failed("throttle", &error))?;
    let debug = KernelDebug::new(directory).ok();
    let written = write(&file, seconds, &Dirty::of(&disk, debug.as_ref()), image_bytes);
    disk.throttle(DiskRates::default()).map_err(|error| failed("throttle", &error))?;
    written.map_err(|error| failed("the writer", &error))
}

fn write(file: &File, seconds: u64, dirty: &Dirty, bytes_max: u64) -> std::io::Result<Written> {
    let (accepted, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = Instant::now();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let (dirty_bytes, accepted_bytes) = (dirty.bytes(), accepted.load(Ordering::Relaxed));
                looks.push(Look { at_s: start.elapsed().as_secs_f64(), dirty_bytes, accepted_bytes });
                thread::sleep(LOOK_EVERY);
            }
            looks
        });
        let result = stream(file, start, Duration::from_secs(seconds), bytes_max, &accepted);
        over.store(true, Ordering::Relaxed);
        let looks = watcher.join().unwrap_or_default();
        let (mut times_ns, sync_ns) = result?;
        times_ns.sort_unstable();
        let p99_ns = times_ns[(times_ns.len() * 99 / 100).min(times_ns.len() - 1)];
        Ok(Written { looks, p99_ns, max_ns: times_ns[times_ns.len() - 1], sync_ns })
    })
}

fn stream(
    file: &File,
    start: Instant,
    time: Duration,
    bytes_max: u64,
    accepted: &AtomicU64,
) -> std::io::Result<(Vec<u64>, u64)> {
    let (block, mut offset, mut times_ns) = (vec![0x5a; BLOCK_BYTES as usize], 0, Vec::new());
    while start.elapsed() < time && offset < bytes_max - SPARE_OF_IMAGE_BYTES && times_ns.len() < WRITES_MAX {
        let began = Instant::now();
        file.write_all_at(&block, offset)?;
        times_ns.push(began.elapsed().as_nanos() as u64);
        offset += BLOCK_BYTES;
        accepted.store(offset, Ordering::Relaxed);
    }
    let began = Instant::now();
    file.sync_all()?;
    Ok((times_ns, began.elapsed().as_nanos() as u64))
}
