//! Afflux as a contender: a cache that is as large as it has to be, and a file in it.
//!
//! Owns: its settings.
//! Does not own: the calls that are measured.
//! Invariants: nothing is written to the disk because of its age or amount while hits are measured: the kernel with its
//! defaults would not either, at these sizes and times.

use std::io;
use std::path::Path;

use afflux::{Cache, File};

/// Memory beyond what is to be cached.
const SPARE_BYTES: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;
/// What is dirty stays so: not too old, not too much, not more than the disk writes in a minute, nor written for idleness.
const KNOBS: [&str; 5] = [
    "dirty_ratio=90",
    "dirty_background_ratio=100",
    "dirty_expire_centisecs=360000",
    "budget_ms=60000",
    "idle_writeback=0",
];

/// A cache for so many bytes.
pub(super) fn cache(bytes: u64) -> io::Result<Cache> {
    let cache = Cache::builder().memory(bytes + bytes / 4 + SPARE_BYTES).build()?;
    KNOBS.iter().try_for_each(|knob| cache.set_text(knob))?;
    Ok(cache)
}

/// A new file of so many bytes, dirty.
pub(super) fn written(cache: &Cache, path: &Path, bytes: u64) -> io::Result<File> {
    let file = cache.create(path)?;
    file.set_len(0)?;
    let chunk = vec![7; CHUNK];
    for at in (0..bytes).step_by(CHUNK) {
        file.write_at(&chunk[..(bytes - at).min(CHUNK as u64) as usize], at)?;
    }
    Ok(file)
}

/// Reads all of a file, so that it is cached.
pub(super) fn read_all(file: &File) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    loop {
        match file.read_at(&mut chunk, at)? {
            0 => return Ok(()),
            count => at += count as u64,
        }
    }
}
