//! A host file that takes the unwritten bytes of a killed server, without our caches.
//!
//! Owns: opening it by its identity, its calls, its path for people.
//! Does not own: what is written (the engine's `Recovered`), when (the command).
//! Invariants: a file that is gone is distinguished from one that cannot be opened.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use afflux_engine::RescuedFile;
use afflux_volume::{Directory, Identity, VolumeError};
use rustix::fs::{OFlags, fsync, ftruncate, readlinkat};
use rustix::io::{Errno, pwrite};

use super::HostTree;
use super::calls::error_of;

/// A file to write home to.
pub struct RescueFile(OwnedFd);

impl HostTree {
    /// Opens a regular file by its identity; `None` if it is gone.
    pub async fn open_to_rescue(&self, identity: Identity) -> Result<Option<RescueFile>, VolumeError> {
        let found = match self.open_identity(identity).await {
            Ok(found) => found,
            Err(VolumeError::Stale | VolumeError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let open = self.with(&found.node, |core, node| core.reopen(node, OFlags::RDWR));
        open.await.map(|file| Some(RescueFile(file)))
    }
}

impl HostTree {
    /// The present path of an object, for people; `None` if it cannot be opened.
    pub async fn path_of(&self, identity: Identity) -> Option<PathBuf> {
        let found = self.open_identity(identity).await.ok()?;
        let path = self.with(&found.node, |core, node| {
            let number = rustix::path::DecInt::from_fd(node.fd());
            readlinkat(&core.descriptors, number, Vec::new()).map_err(error_of)
        });
        Some(PathBuf::from(OsString::from_vec(path.await.ok()?.into_bytes())))
    }
}

impl RescuedFile for RescueFile {
    type Error = io::Error;

    fn write(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match pwrite(&self.0, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        Ok(ftruncate(&self.0, size)?)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }
}
