//! A stream to the real disk without a throttle, until it is durable. It is compared with O_DIRECT by threads that keep
//! the disk busy with blocks of the engine's request size.
//!
//! Owns: the run, its figures.
//! Does not own: contender (`stage`), the goals (`findings`).
//! Invariants: all write the same bytes to a new file, and their time includes the sync. O_DIRECT has its best case:
//! the file's size is set ahead, so that writes do not wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::plan::Subject;
use super::ran::Ran;
use super::stage::Stage;
use crate::contenders::Sink;
use crate::contenders::writer::{Block, Control, Stream, ended};
use crate::host_memory::warm_memory;

/// The size of the engine's requests.
const BLOCK_BYTES: u64 = 1 << 20;
/// Blocks in flight.
const DEPTH: usize = 8;

pub(super) fn run(stage: &Stage<'_>, subject: &Subject, repeat: u64) -> Result<Ran, String> {
    if *subject == Subject::Raw && repeat == 1 {
        // A first run, which does not count, makes the host allocate the disk's blocks.
        once(stage, subject)?;
    }
    once(stage, subject)
}

fn once(stage: &Stage<'_>, subject: &Subject) -> Result<Ran, String> {
    let bytes = stage.plan.direct_bytes / BLOCK_BYTES * BLOCK_BYTES;
    let directory = stage.disks.path();
    let contender = stage.contender(subject, &[directory])?;
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
                _ => Stream::of(BLOCK_BYTES, bytes).write(&*file, &Control::default()).map(drop)?,
            }
            file.sync()
        }))
    });
    let elapsed = began.elapsed();
    let _ = std::fs::remove_file(&path);
    wrote?;
    let mb_per_s = bytes as f64 / 1e6 / elapsed.as_secs_f64();
    Ok(Ran { metrics: vec![("mb_per_s", mb_per_s)], looks: Vec::new(), delays: contender.delays() })
}

fn many_in_flight(file: &dyn Sink, bytes: u64) -> Result<(), String> {
    let next = AtomicU64::new(0);
    let work = || {
        let block = Block::new(BLOCK_BYTES as usize);
        loop {
            let offset = next.fetch_add(BLOCK_BYTES, Ordering::Relaxed);
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
