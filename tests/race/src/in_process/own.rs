//! Afflux as a contender: a cache that is as large as it has to be, and a file in it.
//!
//! Owns: its settings.
//! Does not own: the calls that are measured.
//! Invariants: dirty pages are not written back for age or amount while hits are measured; neither does the kernel with
//! its defaults, at these sizes and times.

use std::io;
use std::path::Path;

use afflux::{Cache, File};

/// Memory besides the cached bytes.
const SPARE_BYTES: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;
/// Dirty pages stay dirty: not too old, not too many, at most the disk's writes of a minute, no writeback in idle time.
const KNOBS: [&str; 5] = [
    "dirty_ratio=90",
    "dirty_background_centisecs=6000",
    "dirty_expire_centisecs=360000",
    "budget_ms=60000",
    "idle_writeback=0",
];

/// A cache for this many bytes.
pub(super) fn cache(bytes: u64) -> io::Result<Cache> {
    let cache = Cache::builder().memory(bytes + bytes / 4 + SPARE_BYTES).build()?;
    KNOBS.iter().try_for_each(|knob| cache.set_text(knob))?;
    Ok(cache)
}

/// A new dirty file of this many bytes.
pub(super) fn written(cache: &Cache, path: &Path, bytes: u64) -> io::Result<File> {
    let file = cache.create(path)?;
    file.set_len(0)?;
    let chunk = vec![7; CHUNK];
    for at in (0..bytes).step_by(CHUNK) {
        file.write_at(&chunk[..(bytes - at).min(CHUNK as u64) as usize], at)?;
    }
    Ok(file)
}

/// Reads a whole file, so that it is cached.
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

#[cfg(test)]
mod tests;
