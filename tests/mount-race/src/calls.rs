//! Random reads or writes on a cached file.
//!
//! Owns: the file, the calls, their times.
//! Does not own: the contender.
//! Invariants: the whole file was written or read through the contender before the first call that counts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use afflux_figures::median;
use anyhow::{Context, Result};

use crate::bare::{self, FILE_BYTES};
use crate::contenders::Running;
use crate::figure::Figure;

const LARGE: usize = 1 << 20;
const LEAD: Duration = Duration::from_millis(30);
const RUN: Duration = Duration::from_millis(350);
const QUICK_RUN: Duration = Duration::from_millis(30);

/// Random numbers; each run has the same ones.
struct Draw(u64);

impl Draw {
    fn below(&mut self, of: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) * of) >> 32
    }
}

/// The file, made if it is not there, and read once.
fn opened(place: &Path, write: bool) -> Result<File> {
    let path = place.join(bare::NAME);
    if !std::fs::metadata(&path).is_ok_and(|found| found.len() == FILE_BYTES) {
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        for at in 0..FILE_BYTES / LARGE as u64 {
            file.write_all_at(&vec![at as u8; LARGE], at * LARGE as u64)?;
        }
        // Nothing that is written behind disturbs the calls.
        file.sync_all()?;
    }
    // Some file systems keep the pages only if the program does not write.
    let file = OpenOptions::new().read(true).write(write).open(&path).with_context(|| path.display().to_string())?;
    let mut buffer = vec![0; LARGE];
    for at in 0..FILE_BYTES / LARGE as u64 {
        file.read_exact_at(&mut buffer, at * LARGE as u64)?;
    }
    Ok(file)
}

pub(crate) fn run(running: &Running, write: bool, block: usize, quick: bool) -> Result<Figure> {
    let file = opened(&running.place, write)?;
    let (mut draw, mut buffer) = (Draw(0x9e37_79b9_7f4a_7c15), vec![5; block]);
    let mut call = || {
        let offset = draw.below(FILE_BYTES / block as u64) * block as u64;
        match write {
            true => file.write_all_at(&buffer, offset),
            false => file.read_exact_at(&mut buffer, offset),
        }
    };
    let lead = Instant::now();
    while lead.elapsed() < LEAD {
        call()?;
    }
    let mut times: Vec<u32> = Vec::with_capacity(1 << 21);
    let begun = running.measured();
    let (begin, limit) = (Instant::now(), if quick { QUICK_RUN } else { RUN });
    let mut last = begin;
    while last.duration_since(begin) < limit {
        call()?;
        let now = Instant::now();
        times.push(now.duration_since(last).as_nanos() as u32);
        last = now;
    }
    let (_, used) = begun.end();
    let used = Figure::used(used, times.len());
    let median_ns = median(times.into_iter().map(f64::from)).unwrap_or(f64::NAN);
    Ok(Figure { value: median_ns / 1e3, ..used })
}
