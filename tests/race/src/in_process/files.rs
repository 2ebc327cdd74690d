//! Very many files of one page each, beside one file of as many pages.
//!
//! Owns: the files, enough descriptors for them.
//! Does not own: the contenders.
//! Invariants: all pages are cached before anything is measured.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux::Cache;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Limits, Request};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, Reactors};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::own;
use super::stage::Stage;
use crate::case::Goal;
use crate::rounds::{PAGE, Subject, Worker};

/// A device that answers everything at once, with zeros for reads.
struct AtOnce(Limits);

impl Device for AtOnce {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

pub(super) const WORDS: &str = "Nanoseconds of processor time for a cached 4 KiB read of a file at random, of so many files \
    that are all open; *one file*: Afflux, with one file of as many pages; *kernel*: `pread`. Through the library as many \
    files as the process may have descriptors; more of them in its engine alone, on a device that answers at once.";

const PAGE_BYTES: u64 = PAGE as u64;
/// The goal is at most 1.3 times the cost of one file.
const ONE_FILE: Goal = Goal { against: "one file", ratio: 1.0 / 1.3 };
/// Memory of the engine besides both sets.
const OWN_BYTES: u64 = 64 << 20;
const IN_A_DIRECTORY: u64 = 4096;
/// Descriptors for everything else.
const OTHERS: u64 = 2048;

/// Raises the limit of open descriptors as far as possible.
pub(super) fn allow_many() {
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    let to = |limit| Rlimit { current: Some(limit), maximum: Some(limit) };
    let raised = most.is_some_and(|most| setrlimit(Resource::Nofile, to(most)).is_ok());
    if let (false, Some(limit)) = (raised, getrlimit(Resource::Nofile).maximum) {
        let _ = setrlimit(Resource::Nofile, to(limit));
    }
}

fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The files, which are removed on drop.
struct Many {
    place: PathBuf,
    paths: Vec<PathBuf>,
}

impl Many {
    fn new(directory: &Path, count: u64) -> io::Result<Self> {
        let place = directory.join("many");
        std::fs::create_dir(&place)?;
        let mut many = Self { place, paths: Vec::new() };
        for number in 0..count {
            let folder = many.place.join((number / IN_A_DIRECTORY).to_string());
            if number.is_multiple_of(IN_A_DIRECTORY) {
                std::fs::create_dir_all(&folder)?;
            }
            let path = folder.join(number.to_string());
            // The file is a hole, so that only the cache needs room for it.
            File::create(&path)?.set_len(PAGE_BYTES)?;
            many.paths.push(path);
        }
        Ok(many)
    }
}

impl Drop for Many {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// Reads a page of a random file.
fn read(worker: &mut Worker, files: &[afflux::File]) -> io::Result<()> {
    let file = worker.any(files.len() as u64) as usize;
    files[file].read_exact_at(black_box(worker.page()), 0)
}

/// As many files as the process may open, up to this many, for the library and for the kernel.
pub(super) fn through_the_library(stage: &mut Stage<'_>, most: u64) -> io::Result<()> {
    let count = (descriptors().saturating_sub(OTHERS) / 2).min(most) / 1000 * 1000;
    if count == 0 {
        return Err(io::Error::other(format!("no more than {} descriptors are allowed", descriptors())));
    }
    let name = format!("{count} files");
    if !stage.options.wants(&name) {
        return Ok(());
    }
    (stage.told)(&format!("making {count} files"));
    let many = Many::new(&stage.options.directory, count)?;
    let (cache, one_cache) = (own::cache(count * PAGE_BYTES)?, own::cache(count * PAGE_BYTES)?);
    let mut page = [0; PAGE];
    let mut opened = |cache: &Cache, path: &Path| {
        let file = cache.open_read(path)?;
        file.read_exact_at(&mut page, 0).map(|()| file)
    };
    let files: Vec<_> = many.paths.iter().map(|path| opened(&cache, path)).collect::<io::Result<_>>()?;
    let one_path = stage.options.directory.join("one");
    File::create(&one_path)?.set_len(count * PAGE_BYTES)?;
    let one = one_cache.open_read(&one_path)?;
    std::fs::remove_file(&one_path)?;
    own::read_all(&one)?;

    let kernel: Vec<File> = many.paths.iter().map(File::open).collect::<io::Result<_>>()?;
    kernel.iter().try_for_each(|file| file.read_exact_at(&mut page, 0))?;
    let own = Subject::new("afflux", |worker: &mut Worker| read(worker, &files));
    let one = Subject::new("one file", |worker: &mut Worker| {
        let at = worker.any(count) * PAGE_BYTES;
        one.read_exact_at(black_box(worker.page()), at)
    });
    let kernel = Subject::new("kernel", |worker: &mut Worker| {
        let file = worker.any(count) as usize;
        kernel[file].read_exact_at(black_box(worker.page()), 0)
    });
    stage.case(name, 1, false, Some(ONE_FILE), &[own, one, kernel]);
    (stage.told)("closing them");
    Ok(())
}

/// This many files in the engine, which needs no descriptors for them.
pub(super) fn in_the_engine(stage: &mut Stage<'_>, count: u64) -> io::Result<()> {
    let name = format!("{count} files, the engine alone");
    if !stage.options.wants(&name) {
        return Ok(());
    }
    (stage.told)(&format!("making {count} files in an engine"));
    let reactors = Reactors::start(1, IoChoice::Auto).map_err(io::Error::other)?;
    let platform = reactors.platform();
    let frames = Frames::new(2 * count * PAGE_BYTES + OWN_BYTES).map_err(io::Error::other)?;
    let engine = Engine::new(Arc::new(platform.clone()), Settings::new(), frames);
    let limits = Limits { block_bytes: PAGE as u32, request_bytes_max: 1 << 20, depth: 64, ..Limits::default() };
    let device = engine.add_device("at once", Arc::new(AtOnce(limits)));
    let open = |pages: u64| engine.open(device, Backing::new(Arc::new(())), pages * PAGE_BYTES);
    let files: Vec<_> = (0..count).map(|_| open(1)).collect();
    let one = open(count);
    let mut page = [0; PAGE];
    platform.block_on(async {
        for (number, file) in files.iter().enumerate() {
            engine.read(file, 0, &mut page).await.map_err(io::Error::other)?;
            engine.read(&one, number as u64 * PAGE_BYTES, &mut page).await.map_err(io::Error::other)?;
        }
        io::Result::Ok(())
    })?;
    let found = |count: Option<usize>| count.map(drop).ok_or_else(|| io::Error::other("a page was not there"));
    let many = Subject::new("afflux", |worker: &mut Worker| {
        let file = worker.any(count) as usize;
        found(engine.try_read(&files[file], 0, black_box(worker.page())))
    });
    let one = Subject::new("one file", |worker: &mut Worker| {
        let at = worker.any(count) * PAGE_BYTES;
        found(engine.try_read(&one, at, black_box(worker.page())))
    });
    stage.case(name, 1, false, Some(ONE_FILE), &[many, one]);
    Ok(())
}
