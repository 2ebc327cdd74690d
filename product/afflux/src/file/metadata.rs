//! A file's metadata and shape: times and rights, size, holes, advice about future reads.
//!
//! Owns: the public calls for these, `fsync` of the host's file.
//! Does not own: the search for others' changes (`coherence`), changes of shape (the engine).
//! Invariants: the size is the cache's, everything else the host's.

use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use afflux_engine::Advice;
use rustix::fs::{Statx, fsync};

use crate::coherence::{Stamp, look_at, system_time};
use crate::error::Error;
use crate::file::File;

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

impl File {
    /// Sets the size, on the device too: bytes past a smaller size are gone, bytes up to a larger one read as zeros.
    /// Durable after a sync. Waits for the file's requests in flight.
    ///
    /// # Errors
    /// The device's; a size above the largest. Nothing has changed then.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.block(pin!(self.set_len_work(len)))
    }

    /// [`File::set_len`], awaited. If it is dropped before it ends, the size is the old one or the new.
    ///
    /// # Errors
    /// As [`File::set_len`].
    pub async fn set_len_async(&self, len: u64) -> io::Result<()> {
        self.pass(pin!(self.set_len_work(len))).await
    }

    pub(crate) async fn set_len_work(&self, len: u64) -> Result<(), Error> {
        self.check_writable()?;
        self.0.file.note_written();
        self.prepare_cut(len).await?;
        self.0.engine.set_size(&self.0.pages, len).await.map_err(|error| self.said(error))?;
        self.prepare_cut(len).await
    }

    /// After the cut, dirty bytes may be at the file's end.
    async fn prepare_cut(&self, len: u64) -> Result<(), Error> {
        let file = &self.0.file;
        if file.file.is_clean() { Ok(()) } else { self.core().ensure_writable(file, len).await }
    }

    /// Makes a range read as zeros, and frees the space of its whole pages if the device can. The size stays.
    ///
    /// # Errors
    /// The device's.
    pub fn punch_hole(&self, range: Range<u64>) -> io::Result<()> {
        self.block(pin!(self.punch_work(range)))
    }

    /// [`File::punch_hole`], awaited. If it is dropped before it ends, the range reads as zeros or as before; from the
    /// end of the file's next change of shape on, it stays one of the two.
    ///
    /// # Errors
    /// As [`File::punch_hole`].
    pub async fn punch_hole_async(&self, range: Range<u64>) -> io::Result<()> {
        self.pass(pin!(self.punch_work(range))).await
    }

    async fn punch_work(&self, range: Range<u64>) -> Result<(), Error> {
        self.check_writable()?;
        self.range(&range)?;
        let (core, file) = (self.core(), &self.0.file);
        file.note_written();
        // Partial pages at the ends of the range are written as zeros.
        core.ensure_writable(file, self.len()).await?;
        self.0.engine.punch(&self.0.pages, range).await.map_err(|error| self.said(error))?;
        core.ensure_writable(file, self.len()).await
    }

    /// Announces how a range of the file, or all of it, will be read. Waits for nothing and promises nothing.
    ///
    /// # Errors
    /// A range that ends before it begins; a closed cache.
    pub fn advise(&self, range: Range<u64>, advice: Advice) -> io::Result<()> {
        self.range(&range)?;
        let _inside = self.0.gate.enter(self.stripe())?;
        self.0.engine.advise(&self.0.pages, range, advice);
        Ok(())
    }

    /// Has a range read in the background, as far as there is room: [`Advice::WillNeed`].
    ///
    /// # Errors
    /// As [`File::advise`].
    pub fn prefetch(&self, range: Range<u64>) -> io::Result<()> {
        self.advise(range, Advice::WillNeed)
    }
}
