//! Cases with disks that have the speed of real ones.
//!
//! Owns: the disks, the stream that fills one, the syncs and bursts beside it.
//! Does not own: the contenders; the making of disks (`afflux_experiments`).
//! Invariants: a run starts with disks at rest and ends with them at rest. A contender's server is of this run alone.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use afflux_experiments::hardware::{DiskRates, SlowDisk};
use anyhow::{Context, Result, anyhow};

use crate::contenders::{Contenders, Running, Who};
use crate::figure::Figure;
use crate::options::Options;

const SLOW: u64 = 25_000_000;
const FAST: u64 = 200_000_000;
const DISK_BYTES: u64 = 1 << 30;
const BLOCK: usize = 64 << 10;
const STREAM_BYTES: u64 = 512 << 20;
const BURST_BYTES: u64 = 128 << 20;
/// The time that the stream has to fill the disk's queue and its budget.
const LEAD: Duration = Duration::from_secs(3);
const SYNCS: Duration = Duration::from_secs(6);
const SYNC_EVERY: Duration = Duration::from_millis(100);
const QUICK: Duration = Duration::from_millis(500);

fn writes(bytes_per_s: u64) -> DiskRates {
    DiskRates { read_bytes_per_s: None, write_bytes_per_s: Some(bytes_per_s) }
}

/// A contender's own disk, with the contender over it.
struct OnDisk {
    // Ends before its disk.
    running: Running,
    disk: SlowDisk,
    rates: DiskRates,
}

impl OnDisk {
    fn new(contenders: &mut Contenders<'_>, who: Who, home: &Path, bytes_per_s: u64) -> Result<Self> {
        let rates = writes(bytes_per_s);
        let disk = SlowDisk::queued(home, DISK_BYTES, rates).map_err(|error| anyhow!("{error}"))?;
        let running = contenders.start(who, &home.join("mount"), &disk.path().join("data"))?;
        Ok(Self { running, disk, rates })
    }

    /// Has everything written at the host's speed.
    fn settle(&self, file: &File) -> Result<()> {
        let throttle = |rates| self.disk.throttle(rates).map_err(|error| anyhow!("{error}"));
        throttle(DiskRates::default())?;
        file.sync_all()?;
        self.disk.settle().map_err(|error| anyhow!("{error}"))?;
        throttle(self.rates)
    }
}

/// A program that writes a file over and over, as fast as it can.
struct Stream {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<File>>,
}

impl Stream {
    fn start(place: &Path) -> Self {
        let (ends, path) = (Arc::new(AtomicBool::new(false)), place.join("stream"));
        let told = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let (file, block) = (created(&path)?, vec![3; BLOCK]);
            let mut at = 0;
            while !told.load(Ordering::Relaxed) {
                file.write_all_at(&block, at)?;
                at = (at + BLOCK as u64) % STREAM_BYTES;
            }
            Ok(file)
        });
        Self { ends, thread }
    }

    /// Ends the stream at the host's speed, and leaves the disk at rest.
    fn end(self, on: &OnDisk) -> Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        on.disk.throttle(DiskRates::default()).map_err(|error| anyhow!("{error}"))?;
        let file = self.thread.join().map_err(|_| anyhow!("the stream's thread"))??;
        on.settle(&file)
    }
}

fn created(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    file.with_context(|| path.display().to_string())
}

fn home(options: &Options, name: &str) -> Result<PathBuf> {
    let home = options.directory.join(name);
    std::fs::create_dir_all(&home)?;
    Ok(home)
}

/// The longest fsync of 4 KiB beside a stream, in milliseconds.
pub(crate) fn syncs(contenders: &mut Contenders<'_>, who: Who, options: &Options) -> Result<Figure> {
    let on = OnDisk::new(contenders, who, &home(options, "slow")?, SLOW)?;
    let small = created(&on.running.place.join("small"))?;
    small.sync_all()?;
    let stream = Stream::start(&on.running.place);
    let (lead, limit) = if options.words.quick { (QUICK, QUICK) } else { (LEAD, SYNCS) };
    thread::sleep(lead);
    let (begin, mut longest) = (Instant::now(), Duration::ZERO);
    let mut at = 0;
    while begin.elapsed() < limit {
        let one = Instant::now();
        small.write_all_at(&[9; 4096], at * 4096)?;
        small.sync_all()?;
        longest = longest.max(one.elapsed());
        at += 1;
        thread::sleep(SYNC_EVERY.saturating_sub(one.elapsed()));
    }
    stream.end(&on)?;
    Ok(Figure { value: longest.as_secs_f64() * 1e3, ..Figure::default() })
}

/// The time of a burst to a fast disk beside a full slow one, as a multiple of the time alone.
pub(crate) fn burst(contenders: &mut Contenders<'_>, who: Who, options: &Options) -> Result<Figure> {
    let (fast_home, slow_home) = (home(options, "fast")?, home(options, "slow")?);
    let fast = OnDisk::new(contenders, who, &fast_home, FAST)?;
    let slow = OnDisk::new(contenders, who, &slow_home, SLOW)?;
    // The first burst allocates, and a server learns the disk's speed.
    timed_burst(&fast)?;
    let alone = timed_burst(&fast)?.min(timed_burst(&fast)?);
    let stream = Stream::start(&slow.running.place);
    thread::sleep(if options.words.quick { QUICK } else { LEAD });
    let beside = timed_burst(&fast)?;
    stream.end(&slow)?;
    Ok(Figure { value: beside.as_secs_f64() / alone.as_secs_f64(), ..Figure::default() })
}

fn timed_burst(on: &OnDisk) -> Result<Duration> {
    let file = created(&on.running.place.join("burst"))?;
    let block = vec![4; BLOCK];
    let begin = Instant::now();
    for at in 0..BURST_BYTES / BLOCK as u64 {
        file.write_all_at(&block, at * BLOCK as u64)?;
    }
    let elapsed = begin.elapsed();
    on.settle(&file)?;
    Ok(elapsed)
}
