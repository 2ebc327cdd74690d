//! The files that a server of host directories persists for the next: the key of handles, and the locations of objects.
//!
//! Owns: reading and making the key, reporting its origin; reading the file of locations, adding to it, replacing it by
//! a new one.
//! Does not own: the paths of the files (the command), the use of the key, the contents of the file of locations (the
//! volume).
//! Invariants: each file belongs to its user alone. A key file is either complete or absent. A crash leaves the old
//! file of locations or the new one. One server at a time writes to this file; a server that finds the file locked
//! works without.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_linux_device::WorkerPool;
use afflux_linux_device::pool::Lane;
use afflux_volume::{HandleKey, LocationStore, TreeResult};
use bytes::Bytes;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::device_pools::HostCall;
use crate::host::calls::io_error;

const KEY_BYTES: usize = 16;

/// The origin of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrigin {
    /// Read from the file: handles of earlier runs stay valid.
    Persisted(PathBuf),
    /// Made now and persisted in the file for later runs.
    Made(PathBuf),
    /// Made now and not persisted, for this reason: clients must mount anew after a restart.
    Unkept {
        /// Why it could not be persisted.
        reason: String,
    },
}

/// The key in the file at `path`; a missing file is made, with a new key. The file's directory is made too (0700) if
/// only that is missing. Never fails: a key that cannot be persisted is random, and the result says so. Blocks.
pub fn handle_key(path: Option<&Path>) -> (HandleKey, KeyOrigin) {
    let Some(path) = path else {
        return (random(), KeyOrigin::Unkept { reason: "there is no place to keep it".to_owned() });
    };
    match read_or_make(path) {
        Ok(found) => found,
        Err(reason) => {
            let reason = format!("{}: {reason}", path.display());
            (random(), KeyOrigin::Unkept { reason })
        }
    }
}

fn read_or_make(path: &Path) -> Result<(HandleKey, KeyOrigin), String> {
    if let Some(key) = read(path)? {
        return Ok((key, KeyOrigin::Persisted(path.to_owned())));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        let mut builder = fs::DirBuilder::new();
        match std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.to_string()),
            _ => {}
        }
    }
    let key = random();
    // The key is written to a second file and linked into place: never incomplete, never over
    // another server's.
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let written = write(&beside, &key).and_then(|()| fs::hard_link(&beside, path));
    let _ = fs::remove_file(&beside);
    match written {
        Ok(()) => {
            let synced = File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
            synced.map_err(|error| error.to_string())?;
            Ok((key, KeyOrigin::Made(path.to_owned())))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let key = read(path)?.ok_or("it came and went")?;
            Ok((key, KeyOrigin::Persisted(path.to_owned())))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn read(path: &Path) -> Result<Option<HandleKey>, String> {
    let mut file = match OpenOptions::new().read(true).custom_flags(nofollow()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("others own or may use it; it must be our own with mode 0600".to_owned());
    }
    if metadata.len() != KEY_BYTES as u64 {
        return Err(format!("has {} bytes where a key has {KEY_BYTES}", metadata.len()));
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key).map_err(|error| error.to_string())?;
    Ok(Some(HandleKey::new(key)))
}

fn write(path: &Path, key: &HandleKey) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.as_bytes())?;
    file.sync_all()
}

fn nofollow() -> i32 {
    (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32
}

fn random() -> HandleKey {
    let mut key = [0; KEY_BYTES];
    let mut filled = 0;
    while filled < KEY_BYTES {
        match getrandom(&mut key[filled..], GetRandomFlags::empty()) {
            Ok(bytes) => filled += bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("the host gives no random bytes: {errno}"),
        }
    }
    HandleKey::new(key)
}

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
