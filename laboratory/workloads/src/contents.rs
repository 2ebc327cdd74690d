//! The contents of a workload's files, and checks of reads.
//!
//! Owns: the seam between workloads and models of files, and the models behind it.
//! Does not own: the models (the crate `reference`).
//! Invariants: every begin has an end; ends may come in any order.

use afflux_frames::STAMP_BYTES;
use afflux_reference::{ChangeId, Ending, FileModel, Mismatch, Stamp, StampLook, StampModel, StampWrite, pattern};
use afflux_simulator::{Disk, DiskFileId};

/// Bytes compared at a time at the end of a run.
const CHECK_BYTES: u64 = 64 << 10;
/// Bytes in a page, which has one stamp.
const PAGE_BYTES: usize = 4096;

/// The contents of files in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Contents {
    /// Bytes that identify their file, offset and version. Each read is checked against all that it may return. For
    /// short runs: time and memory grow with the square of the number of writes.
    Exact,
    /// 16 bytes at the start of each page that name file, page and version. Each read is checked against the versions
    /// that it may return. No more of a page is stored, so a cache of 64 GB takes 256 MB.
    #[default]
    Stamped,
    /// The same, checked only by the counters.
    Unchecked,
}

/// Passed from a begin to its end.
#[derive(Debug)]
pub(crate) enum Mark {
    /// A change in the exact model.
    Change(ChangeId),
    /// A read or sync in the exact model.
    Look(Stamp),
    /// A write of stamps.
    StampWrite(StampWrite),
    /// A read or a sync of stamps.
    StampLook(StampLook),
}

/// One file's contents.
pub(crate) trait FileContents: Send {
    /// A write begins; `into` receives the bytes to write.
    fn begin_write(&mut self, offset: u64, into: &mut [u8]) -> Mark;

    fn end_write(&mut self, mark: Mark, ending: Ending);

    fn begin_read(&mut self) -> Mark;

    /// A read of `asked` bytes ends with these bytes, or has failed. An error if it may not return them.
    fn end_read(&mut self, mark: Mark, offset: u64, asked: u64, got: Option<&[u8]>) -> Result<(), Mismatch>;

    /// A sync of the whole file begins.
    fn begin_sync(&mut self) -> Mark;

    /// A sync ends; `done` if it succeeded.
    fn end_sync(&mut self, mark: Mark, done: bool);

    /// Checks the disk's file against the writes. Everything must be on the disk, and nothing in flight.
    fn check_disk(&mut self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch>;

    /// Checks the disk's file after a power loss: it has all synced data, and nothing that was never written.
    fn check_crashed(&self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch>;

    /// Accepted bytes that the disk lacks, in whole pages.
    fn lost_bytes(&mut self, disk: &Disk, file: DiskFileId) -> u64;
}

/// The ranges of a file of this size, each compared at a time.
fn ranges(size: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..size).step_by(CHECK_BYTES as usize).map(move |offset| (offset, (size - offset).min(CHECK_BYTES)))
}

/// Puts the stamps that a disk stored at their offsets in the bytes of a range of whole pages.
fn spread(backed: &[u8], into: &mut [u8]) {
    for (page, stamp) in into.chunks_mut(PAGE_BYTES).zip(backed.chunks(STAMP_BYTES)) {
        page[..stamp.len()].copy_from_slice(stamp);
    }
}

/// Checks every byte against its possible values.
pub(crate) struct Exact {
    model: FileModel,
    version: u64,
}

impl Exact {
    /// A file of `size` bytes of version `first`; its writes get the following versions. A run gives each file a
    /// `first` far from the others'.
    pub(crate) fn new(size: u64, first: u64) -> Self {
        Self { model: FileModel::new(size, first), version: first }
    }
}

impl FileContents for Exact {
    fn begin_write(&mut self, offset: u64, into: &mut [u8]) -> Mark {
        self.version += 1;
        pattern(self.version, offset, into);
        Mark::Change(self.model.begin_write(offset, into.len() as u64, self.version))
    }

    fn end_write(&mut self, mark: Mark, ending: Ending) {
        if let Mark::Change(change) = mark {
            self.model.end(change, ending);
        }
    }

    fn begin_read(&mut self) -> Mark {
        Mark::Look(self.model.look())
    }

    fn end_read(&mut self, mark: Mark, offset: u64, asked: u64, got: Option<&[u8]>) -> Result<(), Mismatch> {
        match (mark, got) {
            (Mark::Look(since), Some(got)) => self.model.check_read(since, offset, asked, got),
            _ => Ok(()),
        }
    }

    fn begin_sync(&mut self) -> Mark {
        Mark::Look(self.model.look())
    }

    fn end_sync(&mut self, mark: Mark, done: bool) {
        if let (Mark::Look(since), true) = (mark, done) {
            self.model.note_synced(since, 0, u64::MAX);
        }
    }

    fn check_disk(&mut self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
        let now = self.model.look();
        self.model.check_size(now, disk.durable_size(file))?;
        for (start, end) in self.model.written_ranges() {
            for offset in (start..end).step_by(CHECK_BYTES as usize) {
                let len = (end - offset).min(CHECK_BYTES) as usize;
                self.model.check_bytes(now, offset, &disk.durable_bytes(file, offset, len))?;
            }
        }
        Ok(())
    }

    fn check_crashed(&self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
        self.model.check_crashed_size(disk.size(file))?;
        for (start, end) in self.model.written_ranges() {
            for offset in (start..end).step_by(CHECK_BYTES as usize) {
                let len = (end - offset).min(CHECK_BYTES) as usize;
                self.model.check_crashed(offset, &disk.live_bytes(file, offset, len))?;
            }
        }
        Ok(())
    }

    fn lost_bytes(&mut self, disk: &Disk, file: DiskFileId) -> u64 {
        let now = self.model.look();
        let pages = self.model.written_ranges().into_iter().flat_map(|(start, end)| {
            let whole = move |offset: u64| (offset, end.min(offset + PAGE_BYTES as u64));
            (start / PAGE_BYTES as u64 * PAGE_BYTES as u64..end).step_by(PAGE_BYTES).map(whole)
        });
        let lacks = |(start, end): &(u64, u64)| {
            self.model.check_bytes(now, *start, &disk.live_bytes(file, *start, (end - start) as usize)).is_err()
        };
        pages.filter(lacks).map(|(start, end)| end - start).sum()
    }
}

/// Checks each page's stamp against its possible values.
pub(crate) struct Stamped {
    model: StampModel,
}

impl Stamped {
    /// A file of `size` zero bytes with its own number.
    pub(crate) fn new(file: u32, size: u64) -> Self {
        Self { model: StampModel::new(file, size) }
    }
}

impl FileContents for Stamped {
    fn begin_write(&mut self, offset: u64, into: &mut [u8]) -> Mark {
        let write = self.model.begin_write(offset, into.len() as u64);
        write.stamp(0, into);
        Mark::StampWrite(write)
    }

    fn end_write(&mut self, mark: Mark, ending: Ending) {
        if let Mark::StampWrite(write) = mark {
            self.model.end_write(write, ending);
        }
    }

    fn begin_read(&mut self) -> Mark {
        Mark::StampLook(self.model.begin_read())
    }

    fn end_read(&mut self, mark: Mark, offset: u64, asked: u64, got: Option<&[u8]>) -> Result<(), Mismatch> {
        let Mark::StampLook(look) = mark else { return Ok(()) };
        match got {
            Some(got) => self.model.end_read(look, offset, asked, got),
            None => {
                self.model.end_look(look);
                Ok(())
            }
        }
    }

    fn begin_sync(&mut self) -> Mark {
        Mark::StampLook(self.model.begin_sync())
    }

    fn end_sync(&mut self, mark: Mark, done: bool) {
        match mark {
            Mark::StampLook(look) if done => self.model.end_sync(look, 0, u64::MAX),
            Mark::StampLook(look) => self.model.end_look(look),
            _ => {}
        }
    }

    fn check_disk(&mut self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
        stamps_on_disk(&mut self.model, disk, file)
    }

    fn check_crashed(&self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
        stamps_after_crash(&self.model, disk, file)
    }

    fn lost_bytes(&mut self, disk: &Disk, file: DiskFileId) -> u64 {
        stamps_lost(&self.model, disk, file)
    }
}

/// A range of a disk's file, with stamps at their offsets and arbitrary bytes between them.
fn stamps_of(disk: &Disk, file: DiskFileId, offset: u64, len: u64, into: &mut [u8]) {
    let backed = disk.backed_bytes(file, offset, len);
    if backed.is_empty() {
        into.fill(0);
    }
    if backed.len() as u64 == len { into[..len as usize].copy_from_slice(&backed) } else { spread(&backed, into) }
}

/// [`FileContents::check_disk`] of a file whose pages are stamped.
pub(crate) fn stamps_on_disk(model: &mut StampModel, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
    let mut bytes = vec![0; CHECK_BYTES as usize];
    for (offset, len) in ranges(disk.size(file)) {
        stamps_of(disk, file, offset, len, &mut bytes);
        let look = model.begin_read();
        model.end_read(look, offset, len, &bytes[..len as usize])?;
    }
    Ok(())
}

/// [`FileContents::check_crashed`] of a file whose pages are stamped.
pub(crate) fn stamps_after_crash(model: &StampModel, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
    let mut bytes = vec![0; CHECK_BYTES as usize];
    for (offset, len) in ranges(disk.size(file)) {
        stamps_of(disk, file, offset, len, &mut bytes);
        model.check_crashed(offset, &bytes[..len as usize])?;
    }
    Ok(())
}

/// [`FileContents::lost_bytes`] of a file whose pages are stamped.
pub(crate) fn stamps_lost(model: &StampModel, disk: &Disk, file: DiskFileId) -> u64 {
    let mut bytes = vec![0; CHECK_BYTES as usize];
    let mut pages = 0;
    for (offset, len) in ranges(model.size()) {
        stamps_of(disk, file, offset, len, &mut bytes);
        pages += model.pages_lost(offset, &bytes[..len as usize]);
    }
    pages * PAGE_BYTES as u64
}
