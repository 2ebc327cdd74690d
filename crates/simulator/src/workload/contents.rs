//! What a workload's files hold, and whether what is read is right.
//!
//! Owns: the seam between workloads and models of files, and the exact model behind it.
//! Does not own: the models (`model`).
//! Invariants: every begin has an end; ends may come in any order.

use crate::disk::{Disk, DiskFileId};
use crate::model::{ChangeId, Ending, FileModel, Mismatch, Stamp, pattern};

/// Bytes that are compared at a time at the end of a run.
const CHECK_BYTES: u64 = 64 << 10;

/// What a begin hands to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// A change that has begun.
    Change(ChangeId),
    /// A look at the file, or a sync, that has begun.
    Look(Stamp),
}

/// One file's contents.
pub(crate) trait FileContents: Send {
    /// A write begins: `into` gets the bytes to write.
    fn begin_write(&mut self, offset: u64, into: &mut [u8]) -> Mark;

    /// The write ends.
    fn end_write(&mut self, mark: Mark, ending: Ending);

    /// A read or a sync begins.
    fn begin_look(&mut self) -> Mark;

    /// A read of `asked` bytes ends with `got`: an error if it may not have.
    fn end_read(&mut self, mark: Mark, offset: u64, asked: u64, got: &[u8]) -> Result<(), Mismatch>;

    /// A sync of the whole file has succeeded.
    fn end_sync(&mut self, mark: Mark);

    /// Everything is said to be durable and nothing is under way: what the disk would have after a power
    /// loss is right.
    fn check_durable(&mut self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch>;
}

/// Every byte against all that it may be.
pub(crate) struct Exact {
    model: FileModel,
    version: u64,
}

impl Exact {
    /// A file of `size` bytes of version `first`, whose writes have the versions after it. A run gives each
    /// file a `first` far from the others'.
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

    fn begin_look(&mut self) -> Mark {
        Mark::Look(self.model.look())
    }

    fn end_read(&mut self, mark: Mark, offset: u64, asked: u64, got: &[u8]) -> Result<(), Mismatch> {
        match mark {
            Mark::Look(since) => self.model.check_read(since, offset, asked, got),
            Mark::Change(_) => Ok(()),
        }
    }

    fn end_sync(&mut self, mark: Mark) {
        if let Mark::Look(since) = mark {
            self.model.note_synced(since, 0, u64::MAX);
        }
    }

    fn check_durable(&mut self, disk: &Disk, file: DiskFileId) -> Result<(), Mismatch> {
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
}
