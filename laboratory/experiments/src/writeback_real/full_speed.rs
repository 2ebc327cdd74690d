//! One writer, 64 KiB at a time, at full speed or at the disk's rate, and then a sync of all data.
//!
//! Owns: the run.
//! Does not own: disk and contender (`stage`), the writer and its figures (`contenders::writer`), the goals
//! (`findings`).
//! Invariants: figures cover writes after the first quarter of the time, when the dirty limit is reached.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::plan::{BLOCK_BYTES, Subject};
use super::ran::{Look, Ran};
use super::stage::Stage;
use crate::contenders::stage::{set_rate, slow_down};
use crate::contenders::writer::{Control, Stream, write_and_sync};

pub(super) fn run(stage: &Stage<'_>, subject: &Subject, rate: Option<u64>) -> Result<Ran, String> {
    let plan = stage.plan;
    let disk = stage.slow_disk(subject)?;
    let contender = stage.contender(subject, &[disk.path()])?;
    let file = contender.create(0, "stream")?;
    slow_down(&disk, plan.rate_bytes_per_s)?;
    let time = Duration::from_secs(plan.seconds);
    let stream = Stream::of(BLOCK_BYTES, plan.stream_bytes_max());
    let stream = Stream { time: Some(time), rate, settled_after: time / 4, ..stream };
    let (control, mut looks) = (Control::default(), Vec::new());
    let wrote = write_and_sync(&stream, &*file, &control, |at| {
        looks.push(Look {
            at_s: at.as_secs_f64(),
            dirty_bytes: contender.dirty_bytes(0),
            accepted_bytes: control.accepted_bytes.load(Ordering::Relaxed),
        });
        Ok(())
    });
    set_rate(&disk, None)?;
    let (written, sync_s) = wrote?;
    Ok(Ran { metrics: written.figures(sync_s), looks, delays: contender.delays() })
}
