//! The directory of a volume on a local file system.
//!
//! Owns: its making, the lock that keeps other processes out, the modes of folders that earlier versions made.
//! Does not own: the files in it, new folders (`private`).
//! Invariants: the lock lives as long as the value; the host takes it from a dead process. A directory that the user
//! made keeps its mode.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::StoreError;
use crate::folders::{DATA, PROBES, RECORDS};

/// A locked directory.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    #[expect(dead_code, reason = "the open file is the lock")]
    file: File,
    /// What others may do to the volume.
    pub(crate) warning: Option<String>,
}

/// Rights of others than the owner.
const OTHERS: u32 = 0o077;
/// The right of others to replace names.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

impl DirectoryLock {
    /// Makes the directory if its parent is there, and locks it.
    pub(crate) fn take(directory: &Path) -> Result<Self, StoreError> {
        let url = || format!("file://{}", directory.display());
        let failed = |error: io::Error| StoreError::Settings { url: url(), why: error.to_string() };
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let file = File::open(directory).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { file, warning: close_folders(directory) }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse { directory: directory.display().to_string() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// Takes the rights of others from the folders of the volume: earlier versions left that to the process's mask. Says
/// what cannot be helped.
fn close_folders(directory: &Path) -> Option<String> {
    for folder in [RECORDS, DATA, PROBES] {
        let folder = directory.join(folder);
        let Ok(found) = fs::symlink_metadata(&folder) else { continue };
        let is_open = found.is_dir() && found.permissions().mode() & OTHERS != 0;
        if is_open && let Err(error) = fs::set_permissions(&folder, Permissions::from_mode(0o700)) {
            return Some(format!("other users may read {}, and its mode cannot be changed: {error}", folder.display()));
        }
    }
    let mode = fs::metadata(directory).ok()?.permissions().mode();
    let may_replace = mode & OTHERS_WRITE != 0 && mode & STICKY == 0;
    may_replace.then(|| {
        let directory = directory.display();
        format!("other users may replace the folders of the volume in {directory}: take their right to write, as by chmod go-w")
    })
}
