//! A burst to a fast disk, alone and beside a stream at full speed to a slow disk.
//!
//! Owns: the run, its figures.
//! Does not own: disks and contender (`stage`), the goals (`html`).
//! Invariants: the time of a burst ends when the writer may go on, not when the data are on the disk. The fast disk has
//! no dirty data when a burst begins, and a burst before the others does not count. Bursts alone and beside use the
//! same disk and, for the engine, the same engine.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::Ran;
use super::plan::{BLOCK_BYTES, Plan, Subject};
use super::stage::Stage;
use crate::contenders::Contender;
use crate::contenders::writer::{Control, Stream};
use crate::hardware::SlowDisk;

/// Bursts that count, alone and beside each.
const BURSTS: usize = 3;
/// Time between two bursts.
const PAUSE: Duration = Duration::from_millis(300);
/// The indices of the disks in the contender's list.
const SLOW: usize = 0;
const FAST: usize = 1;

pub(super) fn run(stage: &Stage<'_>, subject: &Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let slow = stage.slow_disk(subject)?;
    // With less free space, ext4 allocates blocks at the time of the write, and the writer waits for the disk.
    let fast = stage.disk("fast", 4 * plan.burst_bytes + (128 << 20))?;
    let contender = stage.contender(subject, &[slow.path(), fast.path()])?;
    let large = contender.create(SLOW, "stream")?;
    Stage::slow_down(&slow, plan.rate_bytes_per_s)?;
    Stage::slow_down(&fast, plan.fast_bytes_per_s)?;
    let alone = bursts(plan, &*contender, &fast)?;
    let stream = Stream {
        block_bytes: BLOCK_BYTES,
        bytes_max: plan.stream_bytes_max(),
        time: None,
        rate: None,
        settled_after: Duration::ZERO,
    };
    let control = Control::default();
    let (wrote, beside) = thread::scope(|scope| {
        let writer = scope.spawn(|| stream.write(&*large, &control));
        thread::sleep(Duration::from_secs(plan.fill_s));
        let beside = bursts(plan, &*contender, &fast);
        control.stop.store(true, Ordering::Relaxed);
        let let_go = Stage::let_go(&slow);
        let wrote = writer.join().unwrap_or_else(|_| Err("the writer's thread panicked".to_owned()));
        (let_go.and(wrote), beside)
    });
    wrote?;
    let beside = beside?;
    large.cut()?;
    let (alone, beside) = (middle(alone), middle(beside));
    Ok(Ran {
        metrics: vec![
            ("alone_ms", alone.0),
            ("beside_ms", beside.0),
            ("beside_by_alone", beside.0 / alone.0.max(1e-9)),
            ("alone_max_ms", alone.1),
            ("beside_max_ms", beside.1),
        ],
        looks: Vec::new(),
        delays: contender.delays(),
    })
}

/// The time of each burst, and its longest call, in milliseconds.
fn bursts(plan: &Plan, contender: &dyn Contender, fast: &SlowDisk) -> Result<Vec<(f64, f64)>, String> {
    // The first burst finds memory that was not touched for a while, which costs more than the writes.
    burst(plan, contender, fast, "burst")?;
    (0..BURSTS).map(|_| burst(plan, contender, fast, "burst")).collect()
}

fn burst(plan: &Plan, contender: &dyn Contender, fast: &SlowDisk, name: &str) -> Result<(f64, f64), String> {
    let file = contender.create(FAST, name)?;
    let stream = Stream {
        block_bytes: BLOCK_BYTES,
        bytes_max: plan.burst_bytes,
        time: None,
        rate: None,
        settled_after: Duration::ZERO,
    };
    // Runs on a thread of its own, like the writer beside it.
    let wrote = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let began = Instant::now();
            stream.write(&*file, &Control::default()).map(|written| (began.elapsed(), written))
        });
        writer.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    });
    let (elapsed, written) = wrote?;
    file.cut()?;
    Stage::slow_down(fast, plan.fast_bytes_per_s)?;
    thread::sleep(PAUSE);
    Ok((elapsed.as_secs_f64() * 1e3, written.all.max_ms()))
}

/// The median time, and the longest call of all.
fn middle(mut bursts: Vec<(f64, f64)>) -> (f64, f64) {
    bursts.sort_by(|one, other| one.0.total_cmp(&other.0));
    let longest = bursts.iter().map(|(_, longest)| *longest).fold(0.0, f64::max);
    (bursts.get(bursts.len() / 2).map_or(0.0, |(elapsed, _)| *elapsed), longest)
}
