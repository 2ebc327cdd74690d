//! The key of handles, kept in a file.
//!
//! Owns: reading the key, making it, reporting its origin.
//! Does not own: the path of the file (the command), the use of the key (the volume).
//! Invariants: a key file is readable by its owner alone, and is either complete or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use afflux_volume::HandleKey;
use rustix::rand::{GetRandomFlags, getrandom};

const KEY_BYTES: usize = 16;

/// The origin of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrigin {
    /// Read from the file: handles of earlier runs stay valid.
    Persisted(PathBuf),
    /// Made now and kept in the file for later runs.
    Made(PathBuf),
    /// Made now and not kept, for this reason: clients must mount anew after a restart.
    Unkept {
        /// Why it could not be kept.
        reason: String,
    },
}

/// The key in the file at `path`; a missing file is made, with a new key. The file's directory is
/// made too (0700) if only that is missing. Never fails: a key that cannot be kept is random, and
/// the result says so. Blocks.
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
