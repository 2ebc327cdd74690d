//! Pages already in memory: reads, looks, overwrites; and growing files.
//!
//! Owns: the cases, their goals.
//! Does not own: the contenders.
//! Invariants: a contender that does not find its pages has failed.

use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use afflux::{Cache, File};

use super::kernel::KernelFile;
use super::mapped::Mapping;
use super::maps::{Foyer, Map, Moka, QuickCache, filled};
use super::own;
use super::stage::Stage;
use crate::case::Goal;
use crate::rounds::{PAGE, Subject, Worker};
use crate::sizes::{GIB, MIB, size};

pub(super) const WORDS: &str = "Nanoseconds of processor time of the calling threads for one operation on 4 KiB, at \
    random places of a set that is in memory. *Copy*: the page is copied to the caller (`read_at`, `pread`, a copy out of a \
    populated mapping, a look and a copy); *pinned*: a byte of it is read where it is (`read_pinned`; of the caches, which \
    give a counted reference, a look); *overwrite*: `write_at` and `pwrite` on dirty pages, a copy into the mapping, in the \
    caches a new page in the place of the old one; *append*: to a file of each thread's own, 32 MiB from empty. Afflux's \
    knobs for dirty pages are set so that it writes as little meanwhile as the kernel does.";

/// A copy out of a mapping needs no lookup: Afflux's goal is at most a tenth more.
const COPY: Goal = Goal { against: "mmap", ratio: 1.0 / 1.1 };
const PINNED: Goal = Goal { against: "quick_cache", ratio: 1.0 };
const OVERWRITE: Goal = Goal { against: "kernel", ratio: 15.0 };
/// Appends of a thread in one run.
const APPENDS: u64 = 8192;

const PAGE_BYTES: u64 = PAGE as u64;

struct Rig {
    pages: u64,
    _cache: Cache,
    own: File,
    kernel: KernelFile,
    mapping: Mapping,
}

/// The caches of objects.
struct Maps {
    quick: QuickCache,
    foyer: Foyer,
    moka: Moka,
}

impl Maps {
    fn filled(pages: u64) -> Self {
        Self { quick: filled(pages), foyer: filled(pages), moka: filled(pages) }
    }
}

fn missed() -> io::Error {
    io::Error::other("a page was not there")
}

fn map_copy<M: Map>(map: &M, pages: u64) -> Subject<'_> {
    Subject::on_pages(M::NAME, pages, move |worker, number| {
        let into = worker.page();
        map.look(number, |page| into.copy_from_slice(page)).ok_or_else(missed)?;
        black_box(into);
        Ok(())
    })
}

/// The place in a page to look at: another one for each page. The first words of aligned pages would share few lines of
/// the processor's caches, which no program's words do.
fn place_in_page(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
}

fn map_look<M: Map>(map: &M, pages: u64) -> Subject<'_> {
    Subject::on_pages(M::NAME, pages, move |_, number| {
        let word = |page: &[u8; PAGE]| black_box(page[place_in_page(number)]);
        map.look(number, word).map(drop).ok_or_else(missed)
    })
}

fn map_put<M: Map>(map: &M, pages: u64) -> Subject<'_> {
    Subject::on_pages(M::NAME, pages, move |worker, number| {
        map.put(number, Arc::new(*worker.page()));
        Ok(())
    })
}

impl Rig {
    fn written(stage: &Stage<'_>, bytes: u64) -> io::Result<Self> {
        let kernel = KernelFile::written(&stage.options.directory.join("kernel"), bytes)?;
        let cache = own::cache(bytes)?;
        let path = stage.options.directory.join("own");
        let own = own::written(&cache, &path, bytes)?;
        // Its blocks exist as long as it is open.
        std::fs::remove_file(path)?;
        let mapping = Mapping::new(&kernel.file, bytes, true)?;
        Ok(Self { pages: bytes / PAGE_BYTES, _cache: cache, own, kernel, mapping })
    }

    fn copies(&self) -> Vec<Subject<'_>> {
        let pages = self.pages;
        let own = move |worker: &mut Worker, number: u64| {
            let at = number * PAGE_BYTES;
            let into = worker.page();
            let count = self.own.read_at(into, at)?;
            black_box(into);
            if count == PAGE { Ok(()) } else { Err(missed()) }
        };
        let pread = move |worker: &mut Worker, number: u64| {
            let at = number * PAGE_BYTES;
            self.kernel.file.read_exact_at(black_box(worker.page()), at)
        };
        let mapped = move |worker: &mut Worker, number: u64| {
            self.mapping.read(number, worker.page());
            black_box(worker.page());
            Ok(())
        };
        vec![
            Subject::on_pages("afflux", pages, own),
            Subject::on_pages("kernel", pages, pread),
            Subject::on_pages("mmap", pages, mapped),
        ]
    }

    fn looks(&self) -> Vec<Subject<'_>> {
        let pages = self.pages;
        let own = move |_: &mut Worker, number: u64| {
            let at = number * PAGE_BYTES;
            let shown = self.own.read_pinned(at..at + PAGE_BYTES)?;
            black_box(shown.as_slice().ok_or_else(missed)?[place_in_page(number)]);
            Ok(())
        };
        let mapped = move |_: &mut Worker, number: u64| {
            black_box(self.mapping.byte(number, place_in_page(number)));
            Ok(())
        };
        vec![Subject::on_pages("afflux", pages, own), Subject::on_pages("mmap", pages, mapped)]
    }

    fn overwrites(&self) -> Vec<Subject<'_>> {
        let pages = self.pages;
        let own = move |worker: &mut Worker, number: u64| {
            let at = number * PAGE_BYTES;
            self.own.write_at(worker.page(), at)
        };
        let pwrite = move |worker: &mut Worker, number: u64| {
            let at = number * PAGE_BYTES;
            self.kernel.file.write_all_at(worker.page(), at)
        };
        let mapped = move |worker: &mut Worker, number: u64| {
            self.mapping.write(number, worker.page());
            Ok(())
        };
        vec![
            Subject::on_pages("afflux", pages, own),
            Subject::on_pages("kernel", pages, pwrite),
            Subject::on_pages("mmap", pages, mapped),
        ]
    }
}

fn with_maps<'a>(mut subjects: Vec<Subject<'a>>, others: [Subject<'a>; 3]) -> Vec<Subject<'a>> {
    subjects.extend(others);
    subjects
}

/// All cases on a set of this many bytes.
pub(super) fn all(stage: &mut Stage<'_>, bytes: u64) -> io::Result<()> {
    (stage.told)(&format!("making {} for each", size(bytes)));
    let pages = bytes / PAGE_BYTES;
    let maps = Maps::filled(pages);
    let Maps { quick, foyer, moka } = &maps;
    // Then the overwrites at once, before the kernel begins writeback for age.
    let rig = Rig::written(stage, bytes)?;
    for threads in [1, 2] {
        let others = [map_put(quick, pages), map_put(foyer, pages), map_put(moka, pages)];
        let name = format!("overwrite, {}", size(bytes));
        stage.case(name, threads, false, Some(OVERWRITE), &with_maps(rig.overwrites(), others));
    }
    let threads: &[usize] = if bytes == 64 * MIB { &[1, 2, 64] } else { &[1, 2] };
    for threads in threads {
        let others = [map_copy(quick, pages), map_copy(foyer, pages), map_copy(moka, pages)];
        let name = format!("copy, {}", size(bytes));
        stage.case(name, *threads, false, Some(COPY), &with_maps(rig.copies(), others));
        let others = [map_look(quick, pages), map_look(foyer, pages), map_look(moka, pages)];
        let name = format!("pinned, {}", size(bytes));
        stage.case(name, *threads, false, Some(PINNED), &with_maps(rig.looks(), others));
    }
    rig.own.set_len(0)
}

/// Available memory, by the kernel's estimate.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib * 1024)
}

/// A set so large that the caches of objects do not fit beside it.
pub(super) fn read_alone(stage: &mut Stage<'_>, bytes: u64) -> io::Result<()> {
    let (needed, available) = (2 * bytes + bytes / 4 + 2 * GIB, available_bytes());
    if available < needed {
        let gib = |bytes: u64| bytes as f64 / GIB as f64;
        return Err(io::Error::other(format!(
            "{:.1} GiB of memory are to be had, {:.1} needed",
            gib(available),
            gib(needed)
        )));
    }
    (stage.told)(&format!("making {} for each", size(bytes)));
    let kernel = KernelFile::allocated(&stage.options.directory.join("large"), bytes)?;
    kernel.read_all()?;
    let cache = own::cache(bytes)?;
    // The same file as the kernel's: both only read it.
    let own = cache.open_read(&kernel.path)?;
    own::read_all(&own)?;
    let mapping = Mapping::new(&kernel.file, bytes, false)?;
    let rig = Rig { pages: bytes / PAGE_BYTES, _cache: cache, own, kernel, mapping };
    stage.remarks.push(format!("{}: no room for the caches of objects beside the others", size(bytes)));
    for threads in [1, 2] {
        stage.case(format!("copy, {}", size(bytes)), threads, false, Some(COPY), &rig.copies());
        stage.case(format!("pinned, {}", size(bytes)), threads, false, None, &rig.looks());
    }
    Ok(())
}

/// One page that all threads read.
pub(super) fn one_page(stage: &mut Stage<'_>) -> io::Result<()> {
    let rig = Rig::written(stage, PAGE_BYTES)?;
    let maps = Maps::filled(1);
    let Maps { quick, foyer, moka } = &maps;
    for threads in [1, 2, 64] {
        let others = [map_copy(quick, 1), map_copy(foyer, 1), map_copy(moka, 1)];
        stage.case("copy, one hot page", threads, false, Some(COPY), &with_maps(rig.copies(), others));
    }
    for threads in [1, 2] {
        let others = [map_look(quick, 1), map_look(foyer, 1), map_look(moka, 1)];
        stage.case("pinned, one hot page", threads, false, Some(PINNED), &with_maps(rig.looks(), others));
    }
    Ok(())
}

/// Growing files, one for each thread.
pub(super) fn appends(stage: &mut Stage<'_>) -> io::Result<()> {
    let directory = stage.options.directory.clone();
    let cache = own::cache(256 * MIB)?;
    let (mut owns, mut kernels) = (Vec::new(), Vec::new());
    for thread in 0..2 {
        let (own, kernel) = (directory.join(format!("own-{thread}")), directory.join(format!("kernel-{thread}")));
        owns.push(cache.create(&own)?);
        kernels.push(OpenOptions::new().append(true).create(true).open(&kernel)?);
        std::fs::remove_file(own)?;
        std::fs::remove_file(kernel)?;
    }
    for threads in [1, 2] {
        let own = Subject::new("afflux", |worker: &mut Worker| {
            let thread = worker.thread;
            owns[thread].append(worker.page()).map(drop)
        });
        let kernel = Subject::new("kernel", |worker: &mut Worker| {
            let thread = worker.thread;
            (&kernels[thread]).write_all(worker.page())
        });
        let own = own.after(|| owns.iter().try_for_each(|file| file.set_len(0)), APPENDS);
        let kernel = kernel.after(|| kernels.iter().try_for_each(|file| file.set_len(0)), APPENDS);
        stage.case("append", threads, false, None, &[own, kernel]);
    }
    Ok(())
}
