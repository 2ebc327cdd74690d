//! Writes through the kernel: through its page cache, through its page cache with RWF_DONTCACHE, or past it.
//!
//! Owns: the three methods, and a probe for each.
//! Does not own: the limits of a device or of the machine (`hardware`).
//! Invariants: a method that the file system lacks is an error, and is never replaced by another.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_scratch::Scratch;
use rustix::fs::OFlags;
use rustix::io::{ReadWriteFlags, pwritev2};

use super::{Contender, Sink, create_file, said};
use crate::hardware::KernelDebug;
use crate::host::Dirty;

/// Linux 6.14 and later: written pages should leave the page cache as soon as they are on the disk.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
/// Alignment that nearly every file system needs for a write past the page cache.
const PROBE_BYTES: usize = 4096;

/// How a file is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KernelMethod {
    Buffered,
    DontCache,
    Direct,
}

impl KernelMethod {
    fn flags(self) -> i32 {
        if self == Self::Direct { OFlags::DIRECT.bits() as i32 } else { 0 }
    }

    /// The reason why a directory's file system lacks this method, if it does.
    pub(crate) fn missing(self, directory: &Path) -> Option<String> {
        let scratch = match Scratch::new(directory, "probe") {
            Ok(scratch) => scratch,
            Err(error) => return Some(error.to_string()),
        };
        let block = super::writer::Block::new(PROBE_BYTES);
        let tried = create_file(scratch.path(), "probe", self.flags());
        let tried = tried.and_then(|file| KernelFile { file, method: self }.write(0, block.bytes()));
        tried.err()
    }
}

/// The kernel, over some directories.
pub(crate) struct Kernel {
    method: KernelMethod,
    directories: Vec<Directory>,
}

/// A directory and the dirty bytes of its disk. Bytes that were dirty before, of other files, are not counted.
struct Directory {
    path: PathBuf,
    dirty: Dirty,
    dirty_before: u64,
}

impl Kernel {
    /// A kernel over some directories; `debug` tells a device's dirty bytes from those of others.
    pub(crate) fn new(method: KernelMethod, directories: &[&Path], debug: Option<&KernelDebug>) -> Self {
        let with_dirty = |path: &&Path| {
            let dirty = Dirty::of(&device_number(path), debug);
            let dirty_before = dirty.bytes();
            Directory { path: (*path).to_owned(), dirty, dirty_before }
        };
        Self { method, directories: directories.iter().map(with_dirty).collect() }
    }
}

/// Major and minor number of a directory's device, as `7:0`.
fn device_number(directory: &Path) -> String {
    let device = std::fs::metadata(directory).map_or(0, |metadata| metadata.dev());
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

impl Contender for Kernel {
    fn create(&self, directory: usize, name: &str) -> Result<Arc<dyn Sink>, String> {
        let file = create_file(&self.directories[directory].path, name, self.method.flags())?;
        Ok(Arc::new(KernelFile { file, method: self.method }))
    }

    fn dirty_bytes(&self, directory: usize) -> u64 {
        let Directory { dirty, dirty_before, .. } = &self.directories[directory];
        dirty.bytes().saturating_sub(*dirty_before)
    }
}

struct KernelFile {
    file: File,
    method: KernelMethod,
}

impl Sink for KernelFile {
    fn write(&self, offset: u64, block: &[u8]) -> Result<(), String> {
        if self.method != KernelMethod::DontCache {
            return self.file.write_all_at(block, offset).map_err(|error| said("a write", error));
        }
        let mut done = 0;
        while done < block.len() {
            let rest = [IoSlice::new(&block[done..])];
            match pwritev2(&self.file, &rest, offset + done as u64, DONTCACHE) {
                Ok(0) => return Err("a write with RWF_DONTCACHE wrote nothing".to_owned()),
                Ok(written) => done += written,
                Err(error) => return Err(said("a write with RWF_DONTCACHE", error)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), String> {
        self.file.sync_all().map_err(|error| said("fsync", error))
    }

    fn cut(&self) -> Result<(), String> {
        self.file.set_len(0).map_err(|error| said("ftruncate", error))
    }
}
