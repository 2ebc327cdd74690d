//! The file in which a volume keeps the locations of objects.
//!
//! Owns: reading the file, adding to it, replacing it by a new one.
//! Does not own: its contents (the volume), its path (the command).
//! Invariants: the file belongs to its user alone. One server at a time writes to the file; a server that finds it
//! locked works without the file. A crash leaves the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_volume::{LocationStore, TreeResult};
use bytes::Bytes;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::calls::io_error;
use crate::tree_call::HostCall;
use afflux_linux_device::WorkerPool;
use afflux_linux_device::pool::Lane;

/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// How often a file is reopened that was replaced meanwhile.
const OPENS_MAX: usize = 16;

struct LocationFile {
    path: PathBuf,
    file: Mutex<File>,
}

/// The file with a thread of its own.
struct HostLocationFile {
    locations: Arc<LocationFile>,
    pool: WorkerPool,
}

/// The contents of the file at `path`, and the store that adds to it. A missing file is made. An error says why there
/// is no store. Blocks.
pub fn open_location_file(path: &Path) -> Result<(Vec<u8>, Arc<dyn LocationStore>), String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    for _ in 0..OPENS_MAX {
        let mut file = options().create(true).append(true).open(path).map_err(said)?;
        let metadata = file.metadata().map_err(said)?;
        let own = metadata.is_file() && metadata.mode() & 0o077 == 0;
        if !own || metadata.uid() != rustix::process::geteuid().as_raw() || metadata.len() > FILE_BYTES_MAX {
            return Err(format!("{}: it must be a file of our own with mode 0600", path.display()));
        }
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(format!("{}: another server uses it", path.display()));
        }
        let named = fs::symlink_metadata(path).is_ok_and(|named| named.ino() == metadata.ino());
        if !named {
            // A server that has just ended has replaced it.
            continue;
        }
        let mut record = Vec::new();
        file.read_to_end(&mut record).map_err(said)?;
        let locations = LocationFile { path: path.to_owned(), file: Mutex::new(file) };
        let pool = WorkerPool::new("afflux-places", 1, 4);
        return Ok((record, Arc::new(HostLocationFile { locations: Arc::new(locations), pool })));
    }
    Err(format!("{}: it is replaced all the time", path.display()))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    options
}

impl LocationFile {
    fn append(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }

    fn replace(&self, bytes: &[u8]) -> std::io::Result<()> {
        let beside = self.path.with_extension(format!("new-{}", std::process::id()));
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let replaced = self.replace_file(&beside, bytes);
        if replaced.is_err() {
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    fn replace_file(&self, beside: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let mut new = options().create_new(true).append(true).open(beside)?;
        flock(&new, FlockOperation::NonBlockingLockExclusive)?;
        new.write_all(bytes)?;
        new.sync_all()?;
        fs::rename(beside, &self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = new;
        match self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl HostLocationFile {
    fn run(&self, work: impl FnOnce(&LocationFile) -> std::io::Result<()> + Send + 'static) -> TreeResult<'static, ()> {
        let locations = Arc::clone(&self.locations);
        let made = move || (work(&locations).map_err(|error| io_error(&error)), None);
        HostCall::run(&self.pool, Lane::default(), made).into()
    }
}

impl LocationStore for HostLocationFile {
    fn append(&self, bytes: Bytes) -> TreeResult<'_, ()> {
        self.run(move |locations| locations.append(&bytes))
    }

    fn replace(&self, bytes: Bytes) -> TreeResult<'_, ()> {
        self.run(move |locations| locations.replace(&bytes))
    }
}

#[cfg(test)]
mod tests;
