//! A file's metadata.
//!
//! Owns: the public calls for it, `fsync` of the host's file.
//! Does not own: the search for others' changes (`coherence`).
//! Invariants: the size is the cache's, everything else the host's.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Statx, fsync};

use super::File;
use crate::coherence::{Stamp, look_at, system_time};
use crate::error::Error;

/// A file's metadata: the size is the cache's, everything else the host's.
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    len: u64,
    host: Statx,
}

impl Metadata {
    /// The size, including unwritten bytes.
    #[allow(clippy::len_without_is_empty, reason = "a size, not a collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes allocated on the device; unwritten bytes do not count.
    pub fn allocated_bytes(&self) -> u64 {
        self.host.stx_blocks * 512
    }

    /// When the host last saw its bytes change: the time of the writeback, not of the write.
    pub fn modified(&self) -> SystemTime {
        system_time(self.host.stx_mtime)
    }

    /// When it was made, if the host's file system keeps that.
    pub fn created(&self) -> Option<SystemTime> {
        let kept = self.host.stx_mask & rustix::fs::StatxFlags::BTIME.bits() != 0;
        kept.then(|| system_time(self.host.stx_btime))
    }

    /// Its kind and permissions, as in `st_mode`.
    pub fn mode(&self) -> u32 {
        self.host.stx_mode.into()
    }

    /// Its number in its file system.
    pub fn inode(&self) -> u64 {
        self.host.stx_ino
    }

    /// Number of its names: zero if the last one was removed.
    pub fn links(&self) -> u32 {
        self.host.stx_nlink
    }
}

impl File {
    /// Asks the host for the file's metadata. This also notices others' changes of the file.
    ///
    /// # Errors
    /// The host's.
    pub fn metadata(&self) -> io::Result<Metadata> {
        let _inside = self.0.gate.enter(self.stripe())?;
        let before = self.0.file.before_look();
        let host = self.looked()?;
        if let Some(foreign) = self.0.file.seen(&before, Stamp::from(&host)) {
            self.block(pin!(async {
                self.0.engine.try_invalidate(&self.0.pages, foreign.size, foreign.seen).await;
                Ok(())
            }))?;
        }
        Ok(Metadata { len: self.len(), host })
    }

    /// [`File::metadata`], awaited. It can be dropped at any time.
    ///
    /// # Errors
    /// As [`File::metadata`].
    pub async fn metadata_async(&self) -> io::Result<Metadata> {
        let before = self.0.file.before_look();
        let own = self.clone();
        let host = self.pass(pin!(async { Ok(self.0.file.device.calls.run(move || own.looked()).await) })).await??;
        self.pass(pin!(async {
            self.core().take_note(&self.0.file, &before, Stamp::from(&host)).await;
            Ok(())
        }))
        .await?;
        Ok(Metadata { len: self.len(), host })
    }

    fn looked(&self) -> io::Result<Statx> {
        let fd = self.0.file.host.given().ok_or_else(|| Error::Gone { path: self.path() })?;
        look_at(&fd).map_err(|error| self.core().named(error, &self.path()))
    }

    pub(super) async fn sync_host(&self) -> Result<(), Error> {
        let own = Arc::clone(&self.0.file);
        let synced = move || {
            let fd = own.host.given().ok_or_else(|| Error::Gone { path: own.path() })?;
            fsync(&fd).map_err(|error| {
                let error = afflux_engine::DeviceError::Io { errno: error.raw_os_error() };
                Error::Device { path: own.path(), error }
            })
        };
        self.0.file.device.calls.run(synced).await
    }
}
