//! One writer, 64 KiB at a time, at full speed or at the disk's rate, and then a sync of all data.
//!
//! Owns: the run, its figures.
//! Does not own: disk and contender (`stage`), the goals (`html`).
//! Invariants: figures cover writes after the first quarter of the time, when the dirty limit is reached. The thread
//! that may be killed in a sync is not the first of the process.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::plan::{BLOCK_BYTES, Subject};
use super::stage::Stage;
use super::{Look, Ran};
use crate::contenders::writer::{Control, Stream, Written};

const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run(stage: &Stage<'_>, subject: &Subject, rate: Option<u64>) -> Result<Ran, String> {
    let plan = stage.plan;
    let disk = stage.slow_disk(subject)?;
    let contender = stage.contender(subject, &[disk.path()])?;
    let file = contender.create(0, "stream")?;
    Stage::slow_down(&disk, plan.rate_bytes_per_s)?;
    let time = Duration::from_secs(plan.seconds);
    let bytes_max = plan.stream_bytes_max();
    let stream = Stream { block_bytes: BLOCK_BYTES, bytes_max, time: Some(time), rate, settled_after: time / 4 };
    let (control, start, mut looks) = (Control::default(), Instant::now(), Vec::new());
    let wrote: Result<(Written, f64), String> = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = stream.write(&*file, &control)?;
            let began = Instant::now();
            file.sync()?;
            Ok((written, began.elapsed().as_secs_f64()))
        });
        while !writer.is_finished() {
            looks.push(Look {
                at_s: start.elapsed().as_secs_f64(),
                dirty_bytes: contender.dirty_bytes(0),
                accepted_bytes: control.accepted_bytes.load(Ordering::Relaxed),
            });
            thread::sleep(LOOK_EVERY);
        }
        writer.join().unwrap_or_else(|_| Err("the writer's thread panicked".to_owned()))
    });
    Stage::let_go(&disk)?;
    let (written, sync_s) = wrote?;
    Ok(Ran { metrics: metrics(&written, sync_s), looks, delays: contender.delays() })
}

fn metrics(written: &Written, sync_s: f64) -> Vec<(&'static str, f64)> {
    // A short run may end before it settles; then its figures cover all calls.
    let calls = if written.settled.count() > 0 { &written.settled } else { &written.all };
    let (bytes, time) = match written.settled_time.as_secs_f64() {
        settled_s if settled_s > 0.0 => (written.settled_bytes, settled_s),
        _ => (written.bytes, written.elapsed.as_secs_f64()),
    };
    vec![
        ("sync_s", sync_s),
        ("write_p50_ms", calls.per_mille_ms(500)),
        ("write_p99_ms", calls.per_mille_ms(990)),
        ("write_p999_ms", calls.per_mille_ms(999)),
        ("write_max_ms", calls.max_ms()),
        ("write_all_p999_ms", written.all.per_mille_ms(999)),
        ("accepted_mb_per_s", bytes as f64 / 1e6 / time.max(1e-9)),
        ("end_to_end_mb_per_s", written.bytes as f64 / 1e6 / (written.elapsed.as_secs_f64() + sync_s).max(1e-9)),
    ]
}
