//! Size and holes of a file, and advice about future reads.
//!
//! Owns: the public calls.
//! Does not own: the work (the engine).
//! Invariants: as in `file`.

use std::io;
use std::ops::Range;
use std::pin::pin;

use afflux_engine::Advice;

use super::File;
use crate::error::Error;

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
