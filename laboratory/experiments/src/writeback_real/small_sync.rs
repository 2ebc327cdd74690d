//! Syncs of a small file beside a stream at full speed to another file of the same disk.
//!
//! Owns: the run, its figures.
//! Does not own: disk and contender (`stage`), the goals (`findings`).
//! Invariants: syncs begin when the writer has reached its dirty limit; there is at least one.

use std::thread;
use std::time::{Duration, Instant};

use super::plan::{BLOCK_BYTES, Subject};
use super::ran::Ran;
use super::stage::Stage;
use crate::contenders::Sink;
use crate::contenders::latencies::Latencies;
use crate::contenders::stage::{set_rate, slow_down};
use crate::contenders::writer::{Block, Stream, beside};

/// Bytes written before each sync, and the pause after it.
const SMALL_BYTES: usize = 4096;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(stage: &Stage<'_>, subject: &Subject) -> Result<Ran, String> {
    let plan = stage.plan;
    let disk = stage.slow_disk(subject)?;
    let contender = stage.contender(subject, &[disk.path()])?;
    let (large, small) = (contender.create(0, "stream")?, contender.create(0, "small")?);
    slow_down(&disk, plan.rate_bytes_per_s)?;
    let stream = Stream::of(BLOCK_BYTES, plan.stream_bytes_max());
    let (fill, time) = (Duration::from_secs(plan.fill_s), Duration::from_secs(plan.syncs_s));
    let sync = || sync_again_and_again(&*small, time);
    let synced = beside((&stream, &*large), fill, || set_rate(&disk, None), sync)?;
    Ok(Ran {
        metrics: vec![
            ("sync_p50_s", synced.per_mille_ms(500) / 1e3),
            ("sync_p90_s", synced.per_mille_ms(900) / 1e3),
            ("sync_max_s", synced.max_ms() / 1e3),
            ("syncs", synced.count() as f64),
        ],
        looks: Vec::new(),
        delays: contender.delays(),
    })
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
