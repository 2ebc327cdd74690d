//! The races: one run of a contender in each.
//!
//! Owns: a slow disk as a contender needs it, making the contender; the runs and their figures.
//! Does not own: the plan, the making of disks (`contenders::stage`), the writers (`contenders::writer`), the goals
//! (`findings`).
//! Invariants: memory that the kernel will fill was touched before. Figures of a stream cover writes after the first
//! quarter of the time, when the dirty limit is reached. Small syncs begin at that limit, and there is at least one.
//! The time of a burst ends when the writer may go on, not when the data are on the disk. The fast disk has no dirty
//! data when a burst begins, and bursts alone and beside use the same disk and engine. Streams without a throttle write
//! the same bytes to a new file until they are durable.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_report::Fields;

use super::plan::{BLOCK_BYTES, Plan, Subject, WritebackRace};
use crate::contenders::latencies::Latencies;
use crate::contenders::ran::{Look, Ran};
use crate::contenders::stage::{set_rate, slow_down};
use crate::contenders::writer::{Block, Control, Stream, beside, bursts, ended, write_and_sync};
use crate::contenders::{self, Contender, KernelMethod, Ours, Sink};
use crate::hardware::SlowDisk;
use crate::host::warm_memory;

/// Bytes written before each small sync, and the pause after it.
const SMALL_BYTES: usize = 4096;
const PAUSE: Duration = Duration::from_millis(100);
/// The indices of the disks of a burst in the contender's list.
const SLOW: usize = 0;
const FAST: usize = 1;
/// The size of the engine's requests, and how many O_DIRECT has in flight.
const REQUEST_BYTES: u64 = 1 << 20;
const DEPTH: usize = 8;

/// The surroundings of all runs.
pub(super) struct Stage<'a> {
    pub(super) disks: contenders::Stage,
    pub(super) plan: &'a Plan,
}

impl Stage<'_> {
    pub(super) fn run(&self, race: WritebackRace, subject: &Subject, repeat: u64) -> Result<Ran, String> {
        match race {
            WritebackRace::FullSpeed => self.stream(subject, None),
            WritebackRace::AtRate => self.stream(subject, Some(self.plan.race.rate_bytes_per_s)),
            WritebackRace::SmallSync => self.small_syncs(subject),
            WritebackRace::Burst => self.burst(subject),
            WritebackRace::Direct => {
                if *subject == Subject::Raw && repeat == 1 {
                    // A first run, which does not count, makes the host allocate the disk's blocks.
                    self.until_durable(subject)?;
                }
                self.until_durable(subject)
            }
        }
    }

    /// The slow disk for this contender, not throttled yet.
    fn slow_disk(&self, subject: &Subject) -> Result<SlowDisk, String> {
        let disk = self.disks.disk("slow", self.plan.image_bytes())?;
        if *subject == Subject::Tuned {
            disk.limit_dirty(Some(self.plan.max_bytes)).map_err(|error| error.to_string())?;
        }
        if *subject == Subject::Kernel {
            warm_memory(self.plan.limit_bytes.min(self.plan.stream_bytes_max()));
        }
        Ok(disk)
    }

    /// The contender over these directories.
    fn contender(&self, subject: &Subject, on: &[&Path]) -> Result<Box<dyn Contender>, String> {
        let way = match subject {
            Subject::Ours(at, _) => return Ok(Box::new(Ours::new(&self.plan.engines[*at], on)?)),
            Subject::Kernel | Subject::Tuned => KernelMethod::Buffered,
            Subject::Raw => KernelMethod::Direct,
        };
        Ok(Box::new(self.disks.kernel(way, on)))
    }

    /// A writer that fills most of a slow disk at full speed.
    fn filling(&self) -> Stream {
        Stream::of(BLOCK_BYTES, self.plan.stream_bytes_max())
    }

    /// One writer, 64 KiB at a time, at full speed or at a rate, and then a sync of all data.
    fn stream(&self, subject: &Subject, rate: Option<u64>) -> Result<Ran, String> {
        let disk = self.slow_disk(subject)?;
        let contender = self.contender(subject, &[disk.path()])?;
        let file = contender.create(0, "stream")?;
        slow_down(&disk, self.plan.race.rate_bytes_per_s)?;
        let time = Duration::from_secs(self.plan.race.seconds);
        let stream = Stream { time: Some(time), rate, settled_after: time / 4, ..self.filling() };
        let (control, mut looks) = (Control::default(), Vec::new());
        let wrote = write_and_sync(&stream, &*file, &control, |at| {
            looks.push(Look {
                at_s: at.as_secs_f64(),
                dirty_bytes: contender.dirty_bytes(0),
                accepted_bytes: control.accepted_bytes.load(Ordering::Relaxed),
                ..Look::default()
            });
            Ok(())
        });
        set_rate(&disk, None)?;
        let (written, sync_s) = wrote?;
        Ok(Ran { metrics: written.figures(sync_s), looks, delays: contender.delays() })
    }

    /// Syncs of a small file beside a stream at full speed to another file of the same disk.
    fn small_syncs(&self, subject: &Subject) -> Result<Ran, String> {
        let disk = self.slow_disk(subject)?;
        let contender = self.contender(subject, &[disk.path()])?;
        let (large, small) = (contender.create(0, "stream")?, contender.create(0, "small")?);
        slow_down(&disk, self.plan.race.rate_bytes_per_s)?;
        let (fill, time) = (Duration::from_secs(self.plan.fill_s), Duration::from_secs(self.plan.syncs_s));
        let sync = || sync_again_and_again(&*small, time);
        let synced = beside(&self.filling(), &*large, fill, || set_rate(&disk, None), sync)?;
        let metrics = Fields::new()
            .with("sync_p50_s", synced.per_mille_ms(500) / 1e3)
            .with("sync_p90_s", synced.per_mille_ms(900) / 1e3)
            .with("sync_max_s", synced.max_ms() / 1e3)
            .with("syncs", synced.count() as f64);
        Ok(Ran { metrics, delays: contender.delays(), ..Ran::default() })
    }

    /// A burst to a fast disk, alone and beside a stream at full speed to a slow disk.
    fn burst(&self, subject: &Subject) -> Result<Ran, String> {
        let plan = self.plan;
        let slow = self.slow_disk(subject)?;
        // With less free space, ext4 allocates blocks at the time of the write, and the writer waits for the disk.
        let fast = self.disks.disk("fast", 4 * plan.burst_bytes + (128 << 20))?;
        let contender = self.contender(subject, &[slow.path(), fast.path()])?;
        let large = contender.create(SLOW, "stream")?;
        slow_down(&slow, plan.race.rate_bytes_per_s)?;
        slow_down(&fast, plan.race.fast_bytes_per_s)?;
        let burst = Stream::of(BLOCK_BYTES, plan.burst_bytes);
        let bursts = || {
            bursts(&*contender, FAST, &burst, 1, |file| {
                file.cut()?;
                slow_down(&fast, plan.race.fast_bytes_per_s)
            })
        };
        let alone = bursts()?;
        let fill = Duration::from_secs(plan.fill_s);
        let beside = beside(&self.filling(), &*large, fill, || set_rate(&slow, None), bursts)?;
        let metrics = Fields::new()
            .with("alone_ms", alone.0)
            .with("beside_ms", beside.0)
            .with("beside_by_alone", beside.0 / alone.0.max(1e-9))
            .with("alone_max_ms", alone.1)
            .with("beside_max_ms", beside.1);
        Ok(Ran { metrics, delays: contender.delays(), ..Ran::default() })
    }

    /// A stream to the real disk without a throttle, until it is durable. O_DIRECT has its best case: threads that keep
    /// the disk busy, and a file whose size is set ahead, so that writes do not wait for each other.
    fn until_durable(&self, subject: &Subject) -> Result<Ran, String> {
        let bytes = self.plan.direct_bytes / REQUEST_BYTES * REQUEST_BYTES;
        let directory = self.disks.path();
        let contender = self.contender(subject, &[directory])?;
        if *subject == Subject::Kernel {
            warm_memory(bytes);
        }
        let (name, path) = ("direct", directory.join("direct"));
        let file = contender.create(0, name)?;
        if *subject == Subject::Raw {
            let sized = std::fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(bytes));
            sized.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let began = Instant::now();
        let wrote = thread::scope(|scope| {
            ended(scope.spawn(|| {
                match subject {
                    Subject::Raw => many_in_flight(&*file, bytes)?,
                    _ => Stream::of(REQUEST_BYTES, bytes).write(&*file, &Control::default()).map(drop)?,
                }
                file.sync()
            }))
        });
        let elapsed = began.elapsed();
        let _ = std::fs::remove_file(&path);
        wrote?;
        let metrics = Fields::new().with("mb_per_s", bytes as f64 / 1e6 / elapsed.as_secs_f64());
        Ok(Ran { metrics, delays: contender.delays(), ..Ran::default() })
    }
}

fn sync_again_and_again(file: &dyn Sink, time: Duration) -> Result<Latencies, String> {
    let (start, block, mut latencies) = (Instant::now(), Block::new(SMALL_BYTES), Latencies::default());
    loop {
        let began = Instant::now();
        file.write(latencies.count() * SMALL_BYTES as u64, block.bytes())?;
        file.sync()?;
        latencies.add(began.elapsed().as_nanos() as u64);
        if start.elapsed() >= time {
            return Ok(latencies);
        }
        thread::sleep(PAUSE);
    }
}

fn many_in_flight(file: &dyn Sink, bytes: u64) -> Result<(), String> {
    let next = AtomicU64::new(0);
    let work = || {
        let block = Block::new(REQUEST_BYTES as usize);
        loop {
            let offset = next.fetch_add(REQUEST_BYTES, Ordering::Relaxed);
            if offset >= bytes {
                return Ok(());
            }
            file.write(offset, block.bytes())?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..DEPTH).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(ended)
    })
}
