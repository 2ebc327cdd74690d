//! Copies a file through a cache, with progress: `copy FROM TO`.
//!
//! The cache reads the source ahead of the copy and writes the target behind it, each at its disk's pace. Neither file
//! stays in memory, and the copy is durable at the end.
#![allow(clippy::print_stderr, reason = "a command")]

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use afflux::{Advice, Cache, OpenOptions};

const PIECE_BYTES: u64 = 1 << 20;
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// The progress of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes that were copied into the cache.
    pub copied: u64,
    /// Of these, not yet on the target's disk.
    pub unwritten: u64,
    /// The source's size.
    pub total: u64,
}

/// Copies a file and returns its size. The copy is durable then.
pub fn copy(cache: &Cache, from: &Path, to: &Path, told: &mut dyn FnMut(Progress)) -> io::Result<u64> {
    let source = cache.open_read(from)?;
    let target = cache.open(to, OpenOptions::new().read(true).write(true).create(true))?;
    if source.is_same(&target) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "they are the same file"));
    }
    target.set_len(0)?;
    // Once copied, neither file is needed again.
    source.advise(0..u64::MAX, Advice::NoReuse)?;
    target.advise(0..u64::MAX, Advice::NoReuse)?;
    let mut copied = 0;
    loop {
        // The bytes go from the source's pages to the target's without another copy.
        let pages = source.read_pinned(copied..copied + PIECE_BYTES)?;
        if pages.is_empty() {
            break;
        }
        for slice in pages.slices() {
            target.write_at(slice, copied)?;
            copied += slice.len() as u64;
        }
        told(Progress { copied, unwritten: target.dirty_bytes(), total: source.len() });
    }
    target.close()?;
    // The name is durable with its directory.
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(directory)?.sync_all()?;
    told(Progress { copied, unwritten: 0, total: copied });
    Ok(copied)
}

fn main() -> io::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [from, to] = arguments.as_slice() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "copy FROM TO"));
    };
    let cache = Cache::builder().memory(64 << 20).build()?;
    let began = Instant::now();
    let mut last = began;
    let bytes = copy(&cache, from, to, &mut |progress| {
        if last.elapsed() >= TOLD_EVERY {
            last = Instant::now();
            let (copied, unwritten, total) = (progress.copied >> 20, progress.unwritten >> 20, progress.total >> 20);
            eprint!("\r{copied} of {total} MiB copied, {unwritten} MiB of them not yet on the disk   ");
        }
    })?;
    cache.close()?;
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("\r{bytes} bytes in {seconds:.2} s, durable                                              ");
    Ok(())
}
