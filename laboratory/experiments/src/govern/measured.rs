//! The same races on throttled disks of this machine, with the governor of the command.
//!
//! Owns: the disks, the governor's thread and its cost, the writers.
//! Does not own: the decisions (crate `govern`), throttled disks (`hardware`).
//! Invariants: the governor manages these disks alone, and has never seen them before. No setting of the machine itself
//! is changed. Each run has disks of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_govern::{Governor, GovernorOptions, Host};
use afflux_scratch::Scratch;
use rustix::time::{ClockId, clock_gettime};

use super::plan::{BLOCK_BYTES, GovernRace, Plan, Subject};
use super::{Look, Ran};
use crate::contenders::writer::{Control, Stream, Written};
use crate::contenders::{Contender, Kernel, KernelWay, Sink};
use crate::hardware::{DiskRates, KernelDebug, SlowDisk, free_bytes};
use crate::host_memory::{dirty_limit_bytes, warm_memory};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// As in the command.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Bursts that count, and the bursts before them that do not.
const BURSTS: usize = 3;
const WARM_UPS: usize = 2;
const BURST_PAUSE: Duration = Duration::from_millis(300);
/// Time for which the slow disk is written to before a burst.
const FILL: Duration = Duration::from_secs(10);
/// Bytes to leave free on the file system with the images.
const SPARE_BYTES: u64 = 2 << 30;
const IMAGE_BYTES_MAX: u64 = 8 << 30;

/// The surroundings of all runs.
pub(super) struct Stage<'a> {
    // Dropped in this order: debugfs is mounted inside the directory.
    debug: Option<KernelDebug>,
    scratch: Scratch,
    plan: &'a Plan,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, String> {
        SlowDisk::probe().map_err(|error| error.to_string())?;
        if let Some(pid) = afflux_govern::running(Path::new("/run/afflux")) {
            return Err(format!("a governor runs here (process {pid}), and would have a say in it: stop it first"));
        }
        let scratch = Scratch::guarded(&plan.directory, "govern").map_err(|error| error.to_string())?;
        let debug = KernelDebug::new(scratch.path()).ok();
        Ok(Self { debug, scratch, plan })
    }

    fn disk(&self, name: &str, bytes: u64) -> Result<SlowDisk, String> {
        let directory = self.scratch.path().join(name);
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let free = free_bytes(&directory).map_err(|error| error.to_string())?;
        if bytes + SPARE_BYTES > free {
            let (bytes, free) = (afflux_report::units::data(bytes + SPARE_BYTES), afflux_report::units::data(free));
            return Err(format!("{}: {bytes} are needed and {free} are free", directory.display()));
        }
        SlowDisk::queued(&directory, bytes, DiskRates::default()).map_err(|error| error.to_string())
    }

    /// Bytes of the slow disk: the kernel's dirty limit, and the data that a writer writes meanwhile at three times the
    /// rate.
    fn image_bytes(&self) -> u64 {
        // A quick run does not wait until the kernel's limit is reached.
        let (least, dirty, times) =
            if self.plan.quick { (128 << 20, 0, 1) } else { (256 << 20, dirty_limit_bytes().unwrap_or(4 << 30), 3) };
        let bytes = dirty.saturating_add(times * self.plan.seconds * self.plan.rate_bytes_per_s) / 7 * 8;
        bytes.next_multiple_of(1 << 20).clamp(least, IMAGE_BYTES_MAX)
    }
}

pub(super) fn run(stage: &Stage<'_>, race: GovernRace, subject: Subject) -> Result<Ran, String> {
    if race == GovernRace::Burst { burst(stage, subject) } else { stream(stage, race, subject) }
}

fn slow_down(disk: &SlowDisk, bytes_per_s: Option<u64>) -> Result<(), String> {
    let rates = DiskRates { read_bytes_per_s: None, write_bytes_per_s: bytes_per_s };
    disk.throttle(rates).map_err(|error| error.to_string())
}

/// Limits the disks as the subject does while `body` runs. Also returns the governor's cost, as a share of a CPU.
fn held<T>(
    stage: &Stage<'_>,
    subject: Subject,
    disks: &[(&SlowDisk, u64)],
    body: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Option<f64>), String> {
    match subject {
        Subject::Kernel => body().map(|it| (it, None)),
        Subject::ByHand => {
            for (disk, rate) in disks {
                let bytes = stage.plan.right_bytes(*rate);
                disk.limit_dirty(Some(bytes)).map_err(|error| error.to_string())?;
            }
            body().map(|it| (it, None))
        }
        Subject::Governed => {
            let stop = AtomicBool::new(false);
            let budget_ns = Some(stage.plan.budget_ns());
            let devices = disks.iter().map(|(disk, _)| (disk.number().to_owned(), budget_ns)).collect();
            let options = GovernorOptions { devices, ..GovernorOptions::default() };
            let run = stage.scratch.path().join("run");
            let started = Governor::start(Host::new(Path::new("/")), options, &run);
            let (governor, ..) = started.map_err(|error| error.to_string())?;
            thread::scope(|scope| {
                let governor = scope.spawn(|| govern(governor, &stop));
                let done = body();
                stop.store(true, Ordering::Relaxed);
                let share = governor.join().unwrap_or_else(|_| Err("the governor panicked".to_owned()))?;
                done.map(|it| (it, Some(share)))
            })
        }
    }
}

/// The command's loop; returns the share of a CPU that it takes.
fn govern(mut governor: Governor, stop: &AtomicBool) -> Result<f64, String> {
    let cpu_ns = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let (start, before_ns) = (Instant::now(), cpu_ns());
    for turn in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        governor.sample(start.elapsed().as_nanos() as u64);
        if turn.is_multiple_of(2) {
            governor.look(&|_| None).map_err(|error| error.to_string())?;
        }
        thread::sleep(SAMPLE_EVERY);
    }
    let share = (cpu_ns() - before_ns) / start.elapsed().as_nanos().max(1) as f64;
    governor.end().map_err(|error| error.to_string())?;
    Ok(share)
}

/// The current dirty limit of a disk.
fn limit_bytes(number: &str) -> u64 {
    let host = Host::new(Path::new("/"));
    let Some(machine) = host.machine().ok() else { return 0 };
    let ppm = host.values(number).ok().flatten().map_or(1_000_000, |values| values.ratio_ppm);
    (u128::from(machine.dirty_bytes) * u128::from(ppm) / 1_000_000) as u64
}

/// One writer, and a sync at the end.
fn stream(stage: &Stage<'_>, race: GovernRace, subject: Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let disk = stage.disk("slow", stage.image_bytes())?;
    if subject == Subject::Kernel {
        warm_memory(dirty_limit_bytes().unwrap_or(0).min(stage.image_bytes()));
    }
    let contender = Kernel::new(KernelWay::Buffered, &[disk.path()], stage.debug.as_ref());
    let file = contender.create(0, "stream")?;
    disk.settle().map_err(|error| error.to_string())?;
    slow_down(&disk, Some(plan.rate_bytes_per_s))?;
    let seconds = if race == GovernRace::Slower { plan.seconds / 2 + plan.follow_s } else { plan.seconds };
    let slower_at = Duration::from_secs(plan.seconds / 2);
    let writer = Stream {
        block_bytes: BLOCK_BYTES,
        bytes_max: stage.image_bytes() / 8 * 7 - (16 << 20),
        time: Some(Duration::from_secs(seconds)),
        rate: (race == GovernRace::Paced).then(|| plan.rate_bytes_per_s / 5 * 2),
        settled_after: Duration::from_secs(plan.seconds) / 4,
    };
    let right_bytes = plan.right_bytes(plan.slow_bytes_per_s) * 4 / 3;
    let body = || {
        let (control, start, mut looks) = (Control::default(), Instant::now(), Vec::new());
        let (mut is_slower, mut followed_s) = (false, None);
        let wrote: Result<(Written, f64), String> = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let written = writer.write(&*file, &control)?;
                let began = Instant::now();
                file.sync()?;
                Ok((written, began.elapsed().as_secs_f64()))
            });
            while !thread.is_finished() {
                let (at, limit_bytes) = (start.elapsed(), limit_bytes(disk.number()));
                if race == GovernRace::Slower && !is_slower && at >= slower_at {
                    slow_down(&disk, Some(plan.slow_bytes_per_s))?;
                    is_slower = true;
                }
                if is_slower && followed_s.is_none() && limit_bytes <= right_bytes / 10 * 13 {
                    followed_s = Some(at.saturating_sub(slower_at).as_secs_f64());
                }
                looks.push(Look { at_s: at.as_secs_f64(), dirty_bytes: contender.dirty_bytes(0), limit_bytes });
                thread::sleep(LOOK_EVERY);
            }
            thread.join().unwrap_or_else(|_| Err("the writer's thread panicked".to_owned()))
        });
        Ok((wrote?, looks, followed_s))
    };
    let held = held(stage, subject, &[(&disk, plan.rate_bytes_per_s)], body);
    slow_down(&disk, None)?;
    let (((written, sync_s), looks, followed_s), cpu) = held?;
    let calls = if written.settled.count() > 0 { &written.settled } else { &written.all };
    let mut metrics = vec![
        ("sync_s", sync_s),
        ("end_to_end_mb_per_s", written.bytes as f64 / 1e6 / (written.elapsed.as_secs_f64() + sync_s).max(1e-9)),
        ("accepted_mb_per_s", written.settled_bytes as f64 / 1e6 / written.settled_time.as_secs_f64().max(1e-9)),
        ("write_p99_ms", calls.per_mille_ms(990)),
        ("write_p999_ms", calls.per_mille_ms(999)),
        ("write_max_ms", calls.max_ms()),
    ];
    metrics.extend(followed_s.filter(|_| subject == Subject::Governed).map(|followed_s| ("followed_s", followed_s)));
    metrics.extend(cpu.map(|share| ("cpu_percent", share * 100.0)));
    Ok(Ran { metrics, looks })
}

/// A burst to a fast disk, alone and beside a writer to the slow one.
fn burst(stage: &Stage<'_>, subject: Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let slow = stage.disk("slow", stage.image_bytes())?;
    // With less free space, ext4 allocates blocks at the time of the write, and the writer waits for the disk.
    let fast = stage.disk("fast", 4 * plan.burst_bytes + (256 << 20))?;
    let contender = Kernel::new(KernelWay::Buffered, &[slow.path(), fast.path()], stage.debug.as_ref());
    let large = contender.create(0, "stream")?;
    slow.settle().and_then(|()| fast.settle()).map_err(|error| error.to_string())?;
    slow_down(&slow, Some(plan.rate_bytes_per_s))?;
    slow_down(&fast, Some(plan.fast_bytes_per_s))?;
    let stream = Stream {
        block_bytes: BLOCK_BYTES,
        bytes_max: stage.image_bytes() / 8 * 7 - (16 << 20),
        time: None,
        rate: None,
        settled_after: Duration::ZERO,
    };
    let fill = if plan.quick { Duration::from_secs(1) } else { FILL };
    let body = || {
        let alone = bursts(plan, &contender)?;
        let control = Control::default();
        let (wrote, beside) = thread::scope(|scope| {
            let writer = scope.spawn(|| stream.write(&*large, &control));
            thread::sleep(fill);
            let beside = bursts(plan, &contender);
            control.stop.store(true, Ordering::Relaxed);
            let let_go = slow_down(&slow, None);
            let wrote = writer.join().unwrap_or_else(|_| Err("the writer's thread panicked".to_owned()));
            (let_go.and(wrote), beside)
        });
        wrote?;
        Ok((alone, beside?))
    };
    let disks = [(&slow, plan.rate_bytes_per_s), (&fast, plan.fast_bytes_per_s)];
    let held = held(stage, subject, &disks, body);
    slow_down(&slow, None)?;
    slow_down(&fast, None)?;
    let ((alone_ms, beside_ms), cpu) = held?;
    large.cut()?;
    let mut metrics =
        vec![("alone_ms", alone_ms), ("beside_ms", beside_ms), ("beside_by_alone", beside_ms / alone_ms.max(1e-9))];
    metrics.extend(cpu.map(|share| ("cpu_percent", share * 100.0)));
    Ok(Ran { metrics, looks: Vec::new() })
}

/// The median time of a burst for its writer, in milliseconds. All data of a burst are on the disk before the next
/// begins.
fn bursts(plan: &Plan, contender: &Kernel) -> Result<f64, String> {
    let mut took_ms = Vec::new();
    for turn in 0..WARM_UPS + BURSTS {
        let file: Arc<dyn Sink> = contender.create(1, "burst")?;
        let stream = Stream {
            block_bytes: BLOCK_BYTES,
            bytes_max: plan.burst_bytes,
            time: None,
            rate: None,
            settled_after: Duration::ZERO,
        };
        let began = Instant::now();
        stream.write(&*file, &Control::default())?;
        let took = began.elapsed();
        file.sync()?;
        thread::sleep(BURST_PAUSE);
        if turn >= WARM_UPS {
            took_ms.push(took.as_secs_f64() * 1e3);
        }
    }
    took_ms.sort_by(f64::total_cmp);
    Ok(took_ms[took_ms.len() / 2])
}
