//! The same races on throttled disks of this machine, with the governor of the command.
//!
//! Owns: the disks, the governor's thread and its cost, the writers.
//! Does not own: the decisions (crate `govern`), throttled disks (`hardware`).
//! Invariants: the governor manages these disks alone, and has never seen them before. No setting of the machine itself
//! is changed. Each run has disks of its own.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_govern::{Governor, GovernorOptions, Host};
use afflux_report::Fields;
use rustix::time::{ClockId, clock_gettime};

use super::plan::{BLOCK_BYTES, GovernRace, Plan, Subject};
use crate::contenders::ran::{Look, Ran};
use crate::contenders::stage::{file_bytes_max, image_bytes, set_rate, slow_down};
use crate::contenders::writer::{Control, Stream, beside, bursts, ended, write_and_sync};
use crate::contenders::{self, Contender, KernelMethod};
use crate::hardware::SlowDisk;
use crate::host::{dirty_limit_bytes, warm_memory};

/// As in the command.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Bursts that do not count.
const WARM_UPS: usize = 2;
/// Time for which the slow disk is written to before a burst.
const FILL: Duration = Duration::from_secs(10);

/// The surroundings of all runs.
pub(super) struct Stage<'a> {
    disks: contenders::Stage,
    plan: &'a Plan,
}

impl<'a> Stage<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Self, String> {
        SlowDisk::probe().map_err(|error| error.to_string())?;
        if let Some(pid) = afflux_govern::running(Path::new("/run/afflux")) {
            return Err(format!("a governor runs here (process {pid}), and would have a say in it: stop it first"));
        }
        Ok(Self { disks: contenders::Stage::new(&plan.directory, "govern")?, plan })
    }

    /// Bytes of the slow disk.
    fn image_bytes(&self) -> u64 {
        let written_bytes = self.plan.race.seconds * self.plan.race.rate_bytes_per_s;
        image_bytes(dirty_limit_bytes().unwrap_or(4 << 30), written_bytes, self.plan.quick)
    }

    /// A writer that fills most of it at full speed.
    fn stream(&self) -> Stream {
        Stream::of(BLOCK_BYTES, file_bytes_max(self.image_bytes()))
    }
}

pub(super) fn run(stage: &Stage<'_>, race: GovernRace, subject: Subject) -> Result<Ran, String> {
    if race == GovernRace::Burst { burst(stage, subject) } else { stream(stage, race, subject) }
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
            let run = stage.disks.path().join("run");
            let started = Governor::start(Host::new(Path::new("/")), options, &run);
            let (governor, ..) = started.map_err(|error| error.to_string())?;
            thread::scope(|scope| {
                let governor = scope.spawn(|| govern(governor, &stop));
                let done = body();
                stop.store(true, Ordering::Relaxed);
                let share = ended(governor)?;
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
    let disk = stage.disks.disk("slow", stage.image_bytes())?;
    if subject == Subject::Kernel {
        warm_memory(dirty_limit_bytes().unwrap_or(0).min(stage.image_bytes()));
    }
    let contender = stage.disks.kernel(KernelMethod::Buffered, &[disk.path()]);
    let file = contender.create(0, "stream")?;
    slow_down(&disk, plan.race.rate_bytes_per_s)?;
    let seconds = if race == GovernRace::Slower { plan.race.seconds / 2 + plan.follow_s } else { plan.race.seconds };
    let slower_at = Duration::from_secs(plan.race.seconds / 2);
    let stream = Stream {
        time: Some(Duration::from_secs(seconds)),
        rate: (race == GovernRace::Paced).then(|| plan.race.rate_bytes_per_s / 5 * 2),
        settled_after: Duration::from_secs(plan.race.seconds) / 4,
        ..stage.stream()
    };
    let right_bytes = plan.right_bytes(plan.slow_bytes_per_s) * 4 / 3;
    let body = || {
        let (mut looks, mut is_slower, mut followed_s) = (Vec::new(), false, None);
        let wrote = write_and_sync(&stream, &*file, &Control::default(), |at| {
            let limit_bytes = limit_bytes(disk.number());
            if race == GovernRace::Slower && !is_slower && at >= slower_at {
                set_rate(&disk, Some(plan.slow_bytes_per_s))?;
                is_slower = true;
            }
            if is_slower && followed_s.is_none() && limit_bytes <= right_bytes / 10 * 13 {
                followed_s = Some(at.saturating_sub(slower_at).as_secs_f64());
            }
            let dirty_bytes = contender.dirty_bytes(0);
            looks.push(Look { at_s: at.as_secs_f64(), dirty_bytes, limit_bytes, ..Look::default() });
            Ok(())
        });
        Ok((wrote?, looks, followed_s))
    };
    let held = held(stage, subject, &[(&disk, plan.race.rate_bytes_per_s)], body);
    set_rate(&disk, None)?;
    let (((written, sync_s), looks, followed_s), cpu) = held?;
    let mut metrics = written.figures(sync_s);
    if let Some(followed_s) = followed_s.filter(|_| subject == Subject::Governed) {
        metrics.push("followed_s", followed_s);
    }
    cpu.into_iter().for_each(|share| metrics.push("cpu_percent", share * 100.0));
    Ok(Ran { metrics, looks, delays: None })
}

/// A burst to a fast disk, alone and beside a writer to the slow one.
fn burst(stage: &Stage<'_>, subject: Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let slow = stage.disks.disk("slow", stage.image_bytes())?;
    // With less free space, ext4 allocates blocks at the time of the write, and the writer waits for the disk.
    let fast = stage.disks.disk("fast", 4 * plan.burst_bytes + (256 << 20))?;
    let contender = stage.disks.kernel(KernelMethod::Buffered, &[slow.path(), fast.path()]);
    let large = contender.create(0, "stream")?;
    slow_down(&slow, plan.race.rate_bytes_per_s)?;
    slow_down(&fast, plan.race.fast_bytes_per_s)?;
    let (stream, burst) = (stage.stream(), Stream::of(BLOCK_BYTES, plan.burst_bytes));
    let fill = if plan.quick { Duration::from_secs(1) } else { FILL };
    // All data of a burst are on the disk before the next begins, so that the governor sees them.
    let bursts = || bursts(&contender, 1, &burst, WARM_UPS, |file| file.sync()).map(|(median_ms, _)| median_ms);
    let body = || {
        let alone_ms = bursts()?;
        Ok((alone_ms, beside(&stream, &*large, fill, || set_rate(&slow, None), bursts)?))
    };
    let disks = [(&slow, plan.race.rate_bytes_per_s), (&fast, plan.race.fast_bytes_per_s)];
    let held = held(stage, subject, &disks, body);
    set_rate(&slow, None)?;
    set_rate(&fast, None)?;
    let ((alone_ms, beside_ms), cpu) = held?;
    let mut metrics = Fields::new()
        .with("alone_ms", alone_ms)
        .with("beside_ms", beside_ms)
        .with("beside_by_alone", beside_ms / alone_ms.max(1e-9));
    cpu.into_iter().for_each(|share| metrics.push("cpu_percent", share * 100.0));
    Ok(Ran { metrics, ..Ran::default() })
}
