//! The kernel's page cache as a contender: its own file, and its calls.
//!
//! Owns: the file, which is removed on drop.
//! Does not own: the measured calls.
//! Invariants: the file's bytes are in the page cache when it is ready.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, FallocateFlags, OFlags, fadvise, fallocate};

const CHUNK: usize = 1 << 20;

/// A file that is removed on drop.
pub(super) struct KernelFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Drop for KernelFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl KernelFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// A new dirty file of this many bytes.
    pub(super) fn written(path: &Path, bytes: u64) -> io::Result<Self> {
        let new = Self::open(path)?;
        let chunk = vec![7; CHUNK];
        for at in (0..bytes).step_by(CHUNK) {
            new.file.write_all_at(&chunk[..(bytes - at).min(CHUNK as u64) as usize], at)?;
        }
        Ok(new)
    }

    /// A new file of this many bytes that were never written: reads of them need no disk.
    pub(super) fn allocated(path: &Path, bytes: u64) -> io::Result<Self> {
        let new = Self::open(path)?;
        fallocate(&new.file, FallocateFlags::empty(), 0, bytes)?;
        new.file.sync_all()?;
        Ok(new)
    }

    pub(super) fn read_all(&self) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        loop {
            match self.file.read_at(&mut chunk, at)? {
                0 => return Ok(()),
                count => at += count as u64,
            }
        }
    }

    /// The same file, opened past the page cache.
    pub(super) fn direct(&self) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&self.path)
    }

    /// Drops its pages, all of which are clean by then; disables readahead from then on.
    pub(super) fn forget(&self) -> io::Result<()> {
        self.file.sync_data()?;
        fadvise(&self.file, 0, None, Advice::DontNeed)?;
        Ok(fadvise(&self.file, 0, None, Advice::Random)?)
    }
}
