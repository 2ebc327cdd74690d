//! The directory of a volume on a local file system.
//!
//! Owns: its making, the lock that keeps other processes out.
//! Does not own: the files in it.
//! Invariants: the lock lives as long as the value; the host takes it from a dead process.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::error::StoreError;

/// A locked directory.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Lock {
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
            Ok(()) => Ok(Self(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse { directory: directory.display().to_string() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}
