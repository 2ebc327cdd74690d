//! A file of the cache as its users see it.
//!
//! Owns: the public calls on a file, in both forms; what a handle may do.
//! Does not own: pages, writeback, syncs (the engine), one file for each file of the host (`files`).
//! Invariants: the two forms of a call are the same work, past the same gate. A hit takes neither lock nor system call.

mod metadata;
mod shape;
mod vectored;

use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use afflux_engine::Engine;
use afflux_linux::{HeldWakes, LinuxPlatform};

pub use self::metadata::Metadata;
use crate::coherence::{Before, Stamp};
use crate::core::Core;
use crate::ending::Life;
use crate::error::Error;
use crate::files::CachedFile;
use crate::gate::Gate;
use crate::open::{Entered, Rights};
use crate::pages::Pages;

/// An open file of a [`Cache`](crate::Cache). A clone is the same handle; all handles of one file see the same bytes.
///
/// Every call that may wait has two forms: one that blocks its thread, named as in `std`, and one that ends in `_async`
/// and can be awaited on any runtime. A `try_` form never waits. What happens when a future is dropped half way stands
/// at each; in no case is anybody else kept waiting for it, and it may be dropped at any time.
///
/// The file may be dropped while it is dirty: the cache writes it later. [`File::close`] says whether it is durable.
#[derive(Clone)]
pub struct File(Arc<Opened>);

/// A handle.
struct Opened {
    file: Arc<CachedFile>,
    rights: Rights,
    // What hits need, close at hand.
    engine: Arc<Engine<LinuxPlatform>>,
    pages: afflux_engine::File,
    gate: Arc<Gate>,
    life: Arc<Life>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.gate.is_forked() {
            // Locks may be held that nobody here gives back.
            std::mem::forget(Arc::clone(&self.file));
            return;
        }
        // What waits for memory may wake foreign tasks.
        let _held = HeldWakes::new();
        let core = &self.life.0;
        core.files.close(&self.file);
        if core.needs_this_thread() {
            // A waker dropped the handle. The cache's threads do not wait for the host.
            let (core, file) = (Arc::downgrade(core), Arc::clone(&self.file));
            let rest = move || core.upgrade().into_iter().for_each(|core| core.files.rest(&file));
            self.file.device.calls.post(rest);
        } else {
            core.files.rest(&self.file);
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rights { read, write } = self.0.rights;
        f.debug_struct("File").field("path", &self.path()).field("read", &read).field("write", &write).finish()
    }
}

/// The way in.
impl File {
    pub(crate) fn new(life: &Arc<Life>, entered: Entered) -> (Self, Option<(Before, Stamp)>) {
        let core = &life.0;
        let (engine, gate, pages) = (Arc::clone(&core.engine), Arc::clone(&core.gate), entered.file.file.clone());
        let life = Arc::clone(life);
        let Entered { file, rights, look } = entered;
        (Self(Arc::new(Opened { file, rights, engine, pages, gate, life })), look)
    }

    /// What is left to do before somebody gets the handle.
    pub(crate) async fn begin(&self, look: Option<(Before, Stamp)>, truncate: bool) -> Result<(), Error> {
        if let Some((before, stamp)) = look {
            self.core().take_note(&self.0.file, &before, stamp).await;
        }
        if truncate { self.set_len_work(0).await } else { Ok(()) }
    }

    fn core(&self) -> &Core {
        &self.0.life.0
    }

    #[cfg(test)]
    pub(crate) fn core_of_tests(&self) -> &Arc<Core> {
        &self.0.life.0
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.0.life
    }

    pub(crate) fn stripe(&self) -> u64 {
        self.0.file.key.inode
    }

    fn may_read(&self) -> Result<(), Error> {
        self.may(self.0.rights.read, "reading")
    }

    fn may_write(&self) -> Result<(), Error> {
        self.may(self.0.rights.write, "writing")
    }

    #[inline]
    fn may(&self, it_may: bool, wanted: &'static str) -> Result<(), Error> {
        self.0.gate.check()?;
        if it_may { Ok(()) } else { Err(Error::NotOpenedFor { path: self.path(), wanted }) }
    }

    fn block<T>(&self, work: impl Future<Output = Result<T, Error>>) -> io::Result<T> {
        Ok(self.core().block(self.stripe(), work)?)
    }

    async fn pass<T>(&self, work: impl Future<Output = Result<T, Error>>) -> io::Result<T> {
        Ok(self.core().pass(self.stripe(), work).await?)
    }

    fn said(&self, error: afflux_engine::Error) -> Error {
        self.0.file.error(error)
    }

    /// A range that can be one of the file: its end.
    fn end_of(&self, offset: u64, len: usize) -> Result<u64, Error> {
        let max = i64::MAX as u64;
        let end = offset.checked_add(len as u64).filter(|end| *end <= max);
        end.ok_or_else(|| self.no_range(offset.into(), u128::from(offset) + len as u128, max))
    }

    fn no_range(&self, from: u128, to: u128, max: u64) -> Error {
        Error::Range { path: self.path(), from, to, max }
    }

    fn range(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.start <= range.end {
            return Ok(());
        }
        Err(self.no_range(range.start.into(), range.end.into(), u64::MAX))
    }
}

/// What it is.
impl File {
    /// The path that the file was opened by last, for people: names change.
    pub fn path(&self) -> PathBuf {
        self.0.file.path()
    }

    /// Its size, as every handle of the cache sees it: at once after a write. Costs a load.
    pub fn len(&self) -> u64 {
        self.0.pages.size()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes not written yet, in whole pages.
    pub fn dirty_bytes(&self) -> u64 {
        self.0.pages.dirty_bytes()
    }

    /// Whether the two are handles of the same file of the host in the same cache.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.file, &other.0.file)
    }
}

/// Reading.
impl File {
    /// Copies bytes out of the cache if all of them are there; returns how many: fewer than asked only at the file's
    /// end. Takes no lock, makes no system call, allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if it would have to wait: `into` may then have some of the bytes. Otherwise as
    /// [`File::read_at`].
    #[inline]
    pub fn try_read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.may_read()?;
        self.end_of(offset, into.len())?;
        self.0.engine.try_read(&self.0.pages, offset, into).ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Copies bytes from `offset` on; returns how many: fewer than asked only at the file's end.
    ///
    /// # Errors
    /// What the device says of bytes that are not in the cache; a range above the largest offset; a handle that was not
    /// opened for reading; a cache that is closed.
    #[inline]
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.may_read()?;
        self.end_of(offset, into.len())?;
        match self.0.engine.try_read(&self.0.pages, offset, into) {
            Some(count) => Ok(count),
            None => self.block(self.read_work(into, offset)),
        }
    }

    /// [`File::read_at`], awaited. Dropped before it ends, `into` may have some of the bytes, and what was being read
    /// comes into the cache all the same.
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub async fn read_at_async(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.try_read_at(into, offset) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.pass(self.read_work(into, offset)).await,
            result => result,
        }
    }

    async fn read_work(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.0.engine.read(&self.0.pages, offset, into).await.map_err(|error| self.said(error))
    }

    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::UnexpectedEof`] if the file ends before; otherwise as [`File::read_at`].
    pub fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let (count, wanted) = (self.read_at(into, offset)?, into.len());
        self.all_of(count, wanted, offset)
    }

    /// [`File::read_exact_at`], awaited. Dropped, it leaves what [`File::read_at_async`] leaves.
    ///
    /// # Errors
    /// As [`File::read_exact_at`].
    pub async fn read_exact_at_async(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let wanted = into.len();
        let count = self.read_at_async(into, offset).await?;
        self.all_of(count, wanted, offset)
    }

    fn all_of(&self, count: usize, wanted: usize, offset: u64) -> io::Result<()> {
        if count == wanted {
            return Ok(());
        }
        let path = self.path();
        let what = format!("{}: it ends {count} bytes after {offset}, not {wanted}", path.display());
        Err(io::Error::new(ErrorKind::UnexpectedEof, what))
    }

    /// Shows bytes where they are in the cache, without a copy, if all of them are there. What is past the file's end is
    /// left out.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if it would have to wait, or pages are held by so many [`Pages`] that these bytes have to
    /// be copied. Otherwise as [`File::read_at`].
    #[inline]
    pub fn try_read_pinned(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        if len == 0 {
            return Ok(Pages::of_copy(Vec::new()));
        }
        let pinned = self.0.engine.try_read_pinned(&self.0.pages, range.start, len);
        pinned.map(Pages::pinned).ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Shows bytes without a copy. What is past the file's end is left out.
    ///
    /// Pages that are shown stay as they are and keep their memory until they are dropped; a write of the same bytes
    /// goes to another page. So at most a quarter of the cache can be held this way ([`Knob::PinnedRatio`]); what is
    /// asked for beyond is a copy, of which [`Pages::is_copy`] tells.
    ///
    /// # Errors
    /// As [`File::read_at`]; [`ErrorKind::OutOfMemory`] where there is no memory for a copy.
    ///
    /// [`Knob::PinnedRatio`]: crate::Knob::PinnedRatio
    #[inline]
    pub fn read_pinned(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        if len == 0 {
            return Ok(Pages::of_copy(Vec::new()));
        }
        match self.0.engine.try_read_pinned(&self.0.pages, range.start, len) {
            Some(pinned) => Ok(Pages::pinned(pinned)),
            None => match self.block(self.pinned_work(range.start, len))? {
                Some(pages) => Ok(pages),
                None => Pages::copied(len, |into| self.read_at(into, range.start)),
            },
        }
    }

    /// [`File::read_pinned`], awaited. Dropped before it ends, nothing is held; what was being read comes into the cache
    /// all the same.
    ///
    /// # Errors
    /// As [`File::read_pinned`].
    pub async fn read_pinned_async(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        if len == 0 {
            return Ok(Pages::of_copy(Vec::new()));
        }
        if let Some(pages) = self.pass(self.pinned_work(range.start, len)).await? {
            return Ok(pages);
        }
        let mut copy = Pages::space(len)?;
        let count = self.read_at_async(&mut copy, range.start).await?;
        copy.truncate(count);
        Ok(Pages::of_copy(copy))
    }

    async fn pinned_work(&self, offset: u64, len: usize) -> Result<Option<Pages>, Error> {
        let pinned = self.0.engine.read_pinned(&self.0.pages, offset, len).await;
        Ok(pinned.map_err(|error| self.said(error))?.map(Pages::pinned))
    }

    /// How many bytes of the range the file has.
    fn pinned_len(&self, range: &Range<u64>) -> Result<usize, Error> {
        self.may_read()?;
        self.range(range)?;
        let end = range.end.min(self.len());
        let len = end.saturating_sub(range.start);
        usize::try_from(len).map_err(|_| self.no_range(range.start.into(), range.end.into(), usize::MAX as u64))
    }
}

/// Writing.
impl File {
    /// Overwrites bytes that are dirty in the cache already: a copy, without lock or system call.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if some of them are not: some may have been overwritten then, which writing all of them
    /// again makes good. Otherwise as [`File::write_at`].
    #[inline]
    pub fn try_write_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.may_write()?;
        self.end_of(offset, from.len())?;
        self.0.engine.try_write(&self.0.pages, offset, from).ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Writes all of `from` at `offset`; the file grows as needed. The bytes are in the cache on return, seen by every
    /// handle, and on the device after a sync that succeeds; without one, by and by.
    ///
    /// Waits for room: so much may be dirty for a device, and so many pages there are.
    ///
    /// # Errors
    /// No space on the device, or a device that keeps failing or [hangs](crate::guide#errors); what the device says of
    /// the rest of a block that is written in part; a range above the largest size; a handle that was not opened for
    /// writing; no descriptors left for the file's end ([`Error::OutOfDescriptors`](crate::Error::OutOfDescriptors)); a
    /// cache that is closed. A part of the bytes, from the first on, may have been written then.
    #[inline]
    pub fn write_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.may_write()?;
        self.end_of(offset, from.len())?;
        if self.0.engine.overwrite(&self.0.pages, offset, from) == from.len() {
            return Ok(());
        }
        self.block(self.write_work(from, offset))
    }

    /// [`File::write_at`], awaited. Dropped before it ends, a part of the bytes, from the first on, may have been
    /// written; the file may have grown by these.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub async fn write_at_async(&self, from: &[u8], offset: u64) -> io::Result<()> {
        match self.try_write_at(from, offset) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.pass(self.write_work(from, offset)).await,
            result => result,
        }
    }

    async fn write_work(&self, from: &[u8], offset: u64) -> Result<(), Error> {
        let (core, file) = (self.core(), &self.0.file);
        let end = offset.saturating_add(from.len() as u64);
        file.note_written();
        core.can_be_written(file, end.max(self.len())).await?;
        self.0.engine.write(&self.0.pages, offset, from).await.map_err(|error| self.said(error))?;
        core.can_be_written(file, end.max(self.len())).await
    }

    /// Writes at the file's end; returns where. One append at a time: what two of them write never overlaps.
    ///
    /// # Errors
    /// As [`File::write_at`]: a part may have been appended.
    pub fn append(&self, from: &[u8]) -> io::Result<u64> {
        self.may_write()?;
        self.block(self.append_work(from))
    }

    /// [`File::append`], awaited. Dropped before it ends, a part of the bytes, from the first on, may have been appended;
    /// those that wait to append go on.
    ///
    /// # Errors
    /// As [`File::append`].
    pub async fn append_async(&self, from: &[u8]) -> io::Result<u64> {
        self.may_write()?;
        self.pass(self.append_work(from)).await
    }

    async fn append_work(&self, from: &[u8]) -> Result<u64, Error> {
        let _turn = self.0.file.tail.turn().await;
        let offset = self.len();
        self.end_of(offset, from.len())?;
        self.write_work(from, offset).await?;
        Ok(offset)
    }
}

/// Durability.
impl File {
    /// Makes everything durable that was written to the file before the call, with its size: `fdatasync`. Bytes that
    /// were written through other handles are included.
    ///
    /// # Errors
    /// What could not be written, also if it was written long before: it stays dirty, is tried again, and every sync says
    /// so until it is durable. So an error is never lost, and a sync after it that succeeds is to be believed.
    pub fn sync_data(&self) -> io::Result<()> {
        self.0.gate.check()?;
        self.block(self.core().sync(&self.0.file))
    }

    /// [`File::sync_data`], awaited. Dropped before it ends, nothing is said of what is durable; the writing goes on.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub async fn sync_data_async(&self) -> io::Result<()> {
        self.pass(self.core().sync(&self.0.file)).await
    }

    /// [`File::sync_data`], and the file's times and mode with it: `fsync`.
    ///
    /// A file that was made is found after a crash once its directory is durable, too; the cache has no part in that.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub fn sync_all(&self) -> io::Result<()> {
        let wanted = self.0.file.host.want_wholly_synced();
        self.sync_data()?;
        // Where no byte had to be made durable, the host was not asked.
        if self.0.file.host.is_wholly_synced(wanted) { Ok(()) } else { self.block(self.sync_host()) }
    }

    /// [`File::sync_all`], awaited. Dropped before it ends, nothing is said of what is durable.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub async fn sync_all_async(&self) -> io::Result<()> {
        let wanted = self.0.file.host.want_wholly_synced();
        self.sync_data_async().await?;
        if self.0.file.host.is_wholly_synced(wanted) { Ok(()) } else { self.pass(self.sync_host()).await }
    }

    /// Makes the bytes of `range` durable that were written before the call, and the file's size.
    ///
    /// # Errors
    /// As [`File::sync_data`]; also of bytes outside of the range.
    pub fn sync_range(&self, range: Range<u64>) -> io::Result<()> {
        self.0.gate.check()?;
        self.range(&range)?;
        self.block(self.sync_range_work(range))
    }

    /// [`File::sync_range`], awaited. Dropped before it ends, nothing is said of what is durable.
    ///
    /// # Errors
    /// As [`File::sync_range`].
    pub async fn sync_range_async(&self, range: Range<u64>) -> io::Result<()> {
        self.range(&range)?;
        self.pass(self.sync_range_work(range)).await
    }

    async fn sync_range_work(&self, range: Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        self.0.engine.sync(&self.0.pages, range).await.map_err(|error| self.said(error))
    }

    /// Makes the file durable if the handle can write, and gives the handle back. Other handles stay.
    ///
    /// # Errors
    /// As [`File::sync_data`]; what is not durable stays dirty, and is written when it can be.
    pub fn close(self) -> io::Result<()> {
        if self.0.rights.write { self.sync_data() } else { Ok(self.0.gate.check()?) }
    }

    /// [`File::close`], awaited. Dropped before it ends, the handle is given back, and nothing is said of what is
    /// durable.
    ///
    /// # Errors
    /// As [`File::close`].
    pub async fn close_async(self) -> io::Result<()> {
        if self.0.rights.write { self.sync_data_async().await } else { Ok(self.0.gate.check()?) }
    }
}
