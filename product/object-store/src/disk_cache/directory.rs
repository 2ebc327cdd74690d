//! The directory of a disk cache: its lock, its space, the volumes of its parts.
//!
//! Owns: the lock, the reservation of all space at the start, which parts an earlier state of a volume has left.
//! Does not own: what is in the files (`foyer`).
//! Invariants: at most one process has the directory. A write to a file meets no full disk, since its space is
//! reserved. No file of others is removed. A volume that was put back from a copy gets a name that no part has
//! (`tests`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::io::Errno;

use crate::error::DiskCacheError;

/// Name of the file that is locked.
const LOCK: &str = "lock";
/// Name of the list of volumes.
const VOLUMES: &str = "volumes";
/// Volumes that are listed. Parts of a volume that left the list are never read again.
const VOLUMES_MAX: usize = 1_024;
const VOLUMES_BYTES_MAX: u64 = 256 * VOLUMES_MAX as u64;
/// Name of the folder of parts, for one version of the format.
const PARTS: &str = "parts-1";
/// The library gives its files this name, and a number of eight digits.
const FILE: &str = "foyer-storage-direct-fs-";

/// Fewest files of a disk cache. One file is evicted at a time.
const FILES_MIN: u64 = 64;
/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 30;
const PAGE_BYTES: u64 = 4096;

/// A locked directory with reserved files.
#[derive(Debug)]
pub(super) struct CacheDirectory {
    path: PathBuf,
    #[expect(dead_code, reason = "the open file is the lock")]
    lock: File,
    pub(super) file_bytes: u64,
    pub(super) files: u64,
    /// Bytes of files that have no part yet.
    pub(super) free_bytes: u64,
}

impl CacheDirectory {
    /// Locks the directory, makes it if its parent is there, and reserves the space.
    pub(super) fn take(path: &Path, bytes: u64) -> Result<Self, DiskCacheError> {
        let directory = path.display().to_string();
        let unusable = |error: &io::Error| DiskCacheError::Unusable { directory: directory.clone(), why: words(error) };
        make(path).map_err(|error| unusable(&error))?;
        let lock = open(&path.join(LOCK)).map_err(|error| unusable(&error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(DiskCacheError::InUse { directory }),
            locked => locked.map_err(|error| unusable(&error.into()))?,
        }
        let files = bytes.div_ceil(FILE_BYTES_MAX).max(FILES_MIN);
        let file_bytes = bytes / files / PAGE_BYTES * PAGE_BYTES;
        let mut taken = Self { path: path.to_owned(), lock, file_bytes, files, free_bytes: 0 };
        taken.reserve().map_err(|error| unusable(&error))?;
        Ok(taken)
    }

    /// The folder of the files.
    pub(super) fn parts(&self) -> PathBuf {
        self.path.join(PARTS)
    }

    /// Reserves the space of each file. Files of another size are made anew. If there is no space, the new ones go.
    fn reserve(&mut self) -> io::Result<()> {
        make(&self.parts())?;
        let names: Vec<PathBuf> =
            (0..self.files).map(|number| self.parts().join(format!("{FILE}{number:08}"))).collect();
        let is_other = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.len() != self.file_bytes);
        if names.iter().any(|path| is_other(path)) || self.parts().join(format!("{FILE}{:08}", self.files)).exists() {
            self.remove_files()?;
        }
        let mut made = Vec::new();
        for path in names {
            let is_new = !path.exists();
            if is_new {
                made.push(path.clone());
            }
            let reserved = open(&path).and_then(|file| {
                fallocate(&file, FallocateFlags::empty(), 0, self.file_bytes)?;
                // A file with parts begins with their index.
                let mut first = [0; PAGE_BYTES as usize];
                file.read_exact_at(&mut first, 0)?;
                Ok(if first.iter().all(|byte| *byte == 0) { self.file_bytes } else { 0 })
            });
            match reserved {
                Ok(free_bytes) => self.free_bytes += free_bytes,
                Err(error) => {
                    made.iter().for_each(|path| drop(fs::remove_file(path)));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn remove_files(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.parts())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(FILE) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// The name of a volume's state in the keys of parts. `epoch` is that of a writer's opening, which is larger than
    /// the epoch of any segment there is. If the list has this epoch already, the volume was put back from a copy: its
    /// later segments get other bytes under their old names. Their parts are never read again.
    pub(super) fn name_of(&self, volume: &str, epoch: Option<u32>, fresh: u64) -> Result<String, DiskCacheError> {
        let directory = self.path.display().to_string();
        let named = self.listed(volume, epoch, fresh);
        named.map_err(|error| DiskCacheError::Unusable { directory, why: words(&error) })
    }

    fn listed(&self, volume: &str, epoch: Option<u32>, fresh: u64) -> io::Result<String> {
        let path = self.path.join(VOLUMES);
        let mut list = String::new();
        open(&path)?.take(VOLUMES_BYTES_MAX).read_to_string(&mut list)?;
        let mut lines: Vec<(String, String, u32)> = list.lines().filter_map(parse).collect();
        let known = lines.iter().position(|(named, ..)| named == volume).map(|at| lines.remove(at));
        let (state, last) = match known {
            Some((_, state, last)) if epoch.is_none_or(|epoch| epoch > last) => (state, last),
            _ => (format!("{fresh:016x}"), 0),
        };
        lines.push((volume.to_owned(), state.clone(), epoch.unwrap_or(last)));
        let list: String = lines[lines.len().saturating_sub(VOLUMES_MAX)..]
            .iter()
            .map(|(volume, state, epoch)| format!("{volume} {state} {epoch}\n"))
            .collect();
        let new = self.path.join(format!("{VOLUMES}.new"));
        let mut file = open(&new)?;
        file.set_len(0)?;
        file.write_all(list.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok(state)
    }
}

fn parse(line: &str) -> Option<(String, String, u32)> {
    let mut words = line.split(' ');
    let line = (words.next()?.to_owned(), words.next()?.to_owned(), words.next()?.parse().ok()?);
    words.next().is_none().then_some(line)
}

/// Makes a private directory, unless it is there.
fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Opens a private file, or makes it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "there is too little space".to_owned(),
        ErrorKind::Unsupported => "its file system cannot reserve space".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
