//! Pages that their writer makes durable at once.
//!
//! Owns: the cases, the files of each contender.
//! Does not own: measurement (`rounds`).
//! Invariants: both contenders write pages of files whose blocks exist already, so that no file system's journal is
//! measured.

use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::kernel::KernelFile;
use super::own;
use super::stage::Stage;
use crate::case::Goal;
use crate::rounds::{PAGE, Subject, Worker};
use crate::sizes::MIB;

pub(super) const WORDS: &str = "Nanoseconds on the clock, of each thread, for writing 4 KiB pages of a file of 4 MiB, at a \
    random place, and making them durable. *kernel*: `pwrite`, then `fdatasync`.";

const BYTES: u64 = 4 * MIB;
const PAGE_BYTES: u64 = PAGE as u64;
const FILE_PAGES: u64 = BYTES / PAGE_BYTES;
const THREADS: usize = 4;
/// As far as the kernel's pages may be beside its syncs: equal.
const EQUAL: Goal = Goal { against: "kernel", ratio: 1.0 };

/// Pages written before a sync, and how far each is from the next.
#[derive(Clone, Copy)]
struct Written {
    pages: u64,
    apart: u64,
}

impl Written {
    fn write(self, worker: &mut Worker, mut write_at: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<()> {
        let first = worker.any(FILE_PAGES - self.pages * self.apart);
        let page = black_box(worker.page());
        (0..self.pages).try_for_each(|number| write_at(page, (first + number * self.apart) * PAGE_BYTES))
    }
}

pub(super) fn run(stage: &mut Stage<'_>) -> io::Result<()> {
    (stage.told)("writing files to be synced");
    let path =
        |name: &str, number: usize| -> PathBuf { stage.options.directory.join(format!("synced-{name}-{number}")) };
    let theirs = (0..THREADS).map(|number| KernelFile::written(&path("kernel", number), BYTES));
    let theirs = theirs.collect::<io::Result<Vec<_>>>()?;
    theirs.iter().try_for_each(|file| file.file.sync_all())?;
    let cache = own::cache(THREADS as u64 * BYTES)?;
    let ours = (0..THREADS).map(|number| own::written(&cache, &path("own", number), BYTES));
    let ours = ours.collect::<io::Result<Vec<_>>>()?;
    ours.iter().try_for_each(afflux::File::sync_all)?;
    let cases = [
        ("sync of a page", 1, true, Written { pages: 1, apart: 1 }),
        ("sync of forty pages beside each other", 1, true, Written { pages: 40, apart: 1 }),
        ("sync of forty pages apart", 1, true, Written { pages: 40, apart: 3 }),
        ("sync of a page, a file each", THREADS, true, Written { pages: 1, apart: 1 }),
        ("sync of a page, one file", THREADS, false, Written { pages: 1, apart: 1 }),
    ];
    for (name, threads, each, written) in cases {
        let file_of = |worker: &Worker| if each { worker.thread } else { 0 };
        let own = Subject::new("afflux", |worker: &mut Worker| {
            let file = &ours[file_of(worker)];
            written.write(worker, |page, at| file.write_at(page, at))?;
            file.sync_data()
        });
        let kernel = Subject::new("kernel", |worker: &mut Worker| {
            let file = &theirs[file_of(worker)].file;
            written.write(worker, |page, at| file.write_all_at(page, at))?;
            file.sync_data()
        });
        stage.case(name, threads, true, Some(EQUAL), &[own, kernel]);
    }
    Ok(())
}
