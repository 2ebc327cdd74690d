//! A burst to a fast disk, alone and beside a stream at full speed to a slow disk.
//!
//! Owns: the run, its figures.
//! Does not own: disks and contender (`stage`), the bursts (`contenders::writer`), the goals (`findings`).
//! Invariants: the time of a burst ends when the writer may go on, not when the data are on the disk. The fast disk has
//! no dirty data when a burst begins. Bursts alone and beside use the same disk and, for the engine, the same engine.

use std::time::Duration;

use super::plan::{BLOCK_BYTES, Subject};
use super::ran::Ran;
use super::stage::Stage;
use crate::contenders::stage::{set_rate, slow_down};
use crate::contenders::writer::{Stream, beside, bursts};

/// The indices of the disks in the contender's list.
const SLOW: usize = 0;
const FAST: usize = 1;

pub(super) fn run(stage: &Stage<'_>, subject: &Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let slow = stage.slow_disk(subject)?;
    // With less free space, ext4 allocates blocks at the time of the write, and the writer waits for the disk.
    let fast = stage.disks.disk("fast", 4 * plan.burst_bytes + (128 << 20))?;
    let contender = stage.contender(subject, &[slow.path(), fast.path()])?;
    let large = contender.create(SLOW, "stream")?;
    slow_down(&slow, plan.rate_bytes_per_s)?;
    slow_down(&fast, plan.fast_bytes_per_s)?;
    let burst = Stream::of(BLOCK_BYTES, plan.burst_bytes);
    let bursts = || {
        bursts(&*contender, FAST, &burst, 1, |file| {
            file.cut()?;
            slow_down(&fast, plan.fast_bytes_per_s)
        })
    };
    let alone = bursts()?;
    let stream = Stream::of(BLOCK_BYTES, plan.stream_bytes_max());
    let fill = Duration::from_secs(plan.fill_s);
    let beside = beside((&stream, &*large), fill, || set_rate(&slow, None), bursts)?;
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
