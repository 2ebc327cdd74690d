//! Pages not in memory: every read is a read of the disk, and evicts another page.
//!
//! Owns: the case, the order of places, from which no cache of this size can profit; the least that a cache does.
//! Does not own: the contenders.
//! Invariants: no page is read again before all others.

use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afflux::Advice;

use super::kernel::KernelFile;
use super::maps::{Foyer, Map, Moka, QuickCache};
use super::stage::Stage;
use crate::rounds::{PAGE, Subject, Worker};
use crate::sizes::{GIB, MIB};

pub(super) const WORDS: &str = "Nanoseconds on the clock, of each thread, for a 4 KiB read at random that is not cached: a \
    file of 16 times the cache, no page twice. *kernel*: `pread`, its pages forgotten before each run, so that it finds \
    memory without evicting; *direct*: `pread` with O_DIRECT into one page, and no cache at all; *floor*: the same into \
    frames of an arena as large as the cache, taken at random, with a copy of the page: what any cache has to do; the caches of objects read so what they \
    miss, copy it to a new page and keep that.";

const PAGE_BYTES: u64 = PAGE as u64;
const CACHES: u64 = 16;
/// Pages of a thread in one run of the kernel, whose cache is unbounded.
const COUNT_MAX: u64 = 4096;

/// An order of places in which each page comes once: steps of an odd length in a power of two of pages.
struct Places {
    pages: u64,
    next: AtomicU64,
}

impl Places {
    fn new(pages: u64) -> Self {
        assert!(pages.is_power_of_two());
        Self { pages, next: AtomicU64::new(0) }
    }

    fn next(&self) -> u64 {
        let step = (self.pages / 1000 * 618) | 1;
        self.next.fetch_add(1, Ordering::Relaxed).wrapping_mul(step) % self.pages
    }
}

/// A frame, at an address that O_DIRECT takes.
#[repr(align(4096))]
struct Frame([u8; PAGE]);

/// The least that a cache does for a miss: the disk's bytes come into a frame of it, and are copied to the reader.
struct Floor(Vec<Mutex<Box<Frame>>>);

impl Floor {
    fn new(frames: u64) -> Self {
        Self((0..frames).map(|_| Mutex::new(Box::new(Frame([1; PAGE])))).collect())
    }

    fn read(&self, direct: &std::fs::File, number: u64, into: &mut [u8; PAGE]) -> io::Result<()> {
        // Frames far from each other, as those that an eviction frees.
        let at = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut frame = self.0[(at % self.0.len() as u64) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        direct.read_exact_at(&mut frame.0, number * PAGE_BYTES)?;
        into.copy_from_slice(black_box(&frame.0));
        Ok(())
    }
}

fn through<'a, M: Map>(map: &'a M, direct: &'a std::fs::File, places: &'a Places) -> Subject<'a> {
    Subject::new(M::NAME, move |worker: &mut Worker| {
        let number = places.next();
        let into = worker.page();
        if map.look(number, |page| into.copy_from_slice(page)).is_some() {
            return Err(io::Error::other("a page was there"));
        }
        direct.read_exact_at(into, number * PAGE_BYTES)?;
        map.put(number, Arc::new(*into));
        Ok(())
    })
    .after(|| Ok(()), COUNT_MAX)
}

pub(super) fn run(stage: &mut Stage<'_>) -> io::Result<()> {
    let bytes = if stage.options.quick { 128 * MIB } else { GIB };
    let (pages, cached) = (bytes / PAGE_BYTES, bytes / CACHES);
    (stage.told)("writing a file to be missed");
    let kernel = KernelFile::written(&stage.options.directory.join("missed"), bytes)?;
    kernel.forget()?;
    let direct = kernel.direct()?;
    let cache = afflux::Cache::builder().memory(cached).build()?;
    let own = cache.open_read(&kernel.path)?;
    own.advise(0..u64::MAX, Advice::Random)?;
    let room = cached / PAGE_BYTES;
    let (quick, foyer, moka) = (QuickCache::with_room(room), Foyer::with_room(room), Moka::with_room(room));
    let floor = Floor::new(room);
    let places: [Places; 7] = std::array::from_fn(|_| Places::new(pages));
    for threads in [1, 2, 64] {
        let own = Subject::new("afflux", |worker: &mut Worker| {
            let at = places[0].next() * PAGE_BYTES;
            own.read_exact_at(black_box(worker.page()), at)
        });
        let pread = Subject::new("kernel", |worker: &mut Worker| {
            let at = places[1].next() * PAGE_BYTES;
            kernel.file.read_exact_at(black_box(worker.page()), at)
        });
        let by_hand = Subject::new("direct", |worker: &mut Worker| {
            let at = places[2].next() * PAGE_BYTES;
            direct.read_exact_at(black_box(worker.page()), at)
        });
        let least = Subject::new("floor", |worker: &mut Worker| {
            floor.read(&direct, places[6].next(), black_box(worker.page()))
        });
        let subjects = [
            own.after(|| Ok(()), COUNT_MAX),
            pread.after(|| kernel.forget(), COUNT_MAX),
            by_hand.after(|| Ok(()), COUNT_MAX),
            least.after(|| Ok(()), COUNT_MAX),
            through(&quick, &direct, &places[3]),
            through(&foyer, &direct, &places[4]),
            through(&moka, &direct, &places[5]),
        ];
        stage.case("miss", threads, true, None, &subjects);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
