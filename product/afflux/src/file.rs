//! A file of the cache as its users see it.
//!
//! Owns: the public calls on a file, in both forms; the rights of a handle.
//! Does not own: pages, writeback, syncs (the engine), one file for each file of the host (`files`).
//! Invariants: the two forms of a call await one work, past the same gate; the form only says who waits. A hit takes
//! neither lock nor system call.

mod metadata;
mod order;
mod vectored;

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;

use afflux_engine::Engine;
use afflux_linux_device::{DeferredWakes, LinuxPlatform};
use rustix::io::Errno;

pub use self::metadata::Metadata;
pub use self::order::Withheld;
use crate::coherence::{EngineSnapshot, Stamp};
use crate::core::Core;
use crate::ending::Life;
use crate::error::Error;
use crate::files::CachedFile;
use crate::gate::Gate;
use crate::open::{OpenedFile, Rights};
use crate::pages::Pages;

/// An open file of a [`Cache`](crate::Cache). A clone is the same handle; all handles of one file see the same bytes.
///
/// Every call that may wait has two forms: one that blocks its thread, named as in `std`, and one that ends in `_async`
/// and can be awaited on any runtime. A `try_` form never waits. A future may be dropped at any time; no other call
/// then waits for it. Each future documents its effect when it is dropped half way.
///
/// A dirty file may be dropped: the cache writes it later. [`File::close`] returns whether it is durable.
#[derive(Clone)]
pub struct File(Arc<Opened>);

struct Opened {
    file: Arc<CachedFile>,
    rights: Rights,
    // The parts that hits need are copied here.
    engine: Arc<Engine<LinuxPlatform>>,
    pages: afflux_engine::File,
    gate: Arc<Gate>,
    life: Arc<Life>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.gate.is_forked() {
            // Locks may be held that nobody here releases.
            std::mem::forget(Arc::clone(&self.file));
            return;
        }
        // Dropping the file may wake foreign tasks that wait for memory.
        let _held = DeferredWakes::new();
        let core = &self.life.0;
        core.files.close(&self.file);
        if core.needs_this_thread() {
            // A waker dropped the handle. The cache's threads must not wait for the host.
            let (core, file) = (Arc::downgrade(core), Arc::clone(&self.file));
            let rest = move || core.upgrade().into_iter().for_each(|core| core.files.release_descriptors(&file));
            self.file.device.calls.post(rest);
        } else {
            core.files.release_descriptors(&self.file);
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rights { read, write } = self.0.rights;
        f.debug_struct("File").field("path", &self.path()).field("read", &read).field("write", &write).finish()
    }
}

impl File {
    pub(crate) fn new(life: &Arc<Life>, entered: OpenedFile) -> (Self, Option<(EngineSnapshot, Stamp)>) {
        let core = &life.0;
        let (engine, gate, pages) = (Arc::clone(&core.engine), Arc::clone(&core.gate), entered.file.file.clone());
        let life = Arc::clone(life);
        let OpenedFile { file, rights, look } = entered;
        (Self(Arc::new(Opened { file, rights, engine, pages, gate, life })), look)
    }

    /// Completes the opening before the caller gets the handle.
    pub(crate) async fn begin(&self, look: Option<(EngineSnapshot, Stamp)>, truncate: bool) -> Result<(), Error> {
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

    fn check_readable(&self) -> Result<(), Error> {
        self.may(self.0.rights.read, "reading")
    }

    fn check_writable(&self) -> Result<(), Error> {
        self.may(self.0.rights.write, "writing")
    }

    #[inline]
    fn may(&self, it_may: bool, wanted: &'static str) -> Result<(), Error> {
        self.0.gate.check()?;
        if it_may { Ok(()) } else { Err(Error::NotOpenedFor { path: self.path(), wanted }) }
    }

    fn block<T>(&self, work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> io::Result<T> {
        // A forked child leaves before its first write to memory.
        self.0.gate.check()?;
        Ok(self.core().block(self.stripe(), work)?)
    }

    fn block_here<T>(&self, work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> io::Result<T> {
        self.0.gate.check()?;
        Ok(self.core().block_here(self.stripe(), work)?)
    }

    async fn pass<T>(&self, work: Pin<&mut impl Future<Output = Result<T, Error>>>) -> io::Result<T> {
        Ok(self.core().pass(self.stripe(), work).await?)
    }

    fn said(&self, error: afflux_engine::Error) -> Error {
        self.0.file.error(error)
    }

    /// The end of a range; an error if the file cannot have it.
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

/// Facts about the file.
impl File {
    /// The path by which the file was last opened, for people: names change.
    pub fn path(&self) -> PathBuf {
        self.0.file.path()
    }

    /// Its size, as every handle of the cache sees it: immediately after a write. Costs a load.
    pub fn len(&self) -> u64 {
        self.0.pages.size()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Unwritten bytes, in whole pages.
    pub fn dirty_bytes(&self) -> u64 {
        self.0.pages.dirty_bytes()
    }

    /// Whether the two are handles of the same file of the host in the same cache.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.file, &other.0.file)
    }
}

impl File {
    /// Copies bytes out of the cache if all of them are cached. Returns their number: fewer than requested only at the
    /// file's end. Takes no lock, makes no system call, allocates nothing.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if it would have to wait: `into` may then have some of the bytes. Otherwise as
    /// [`File::read_at`].
    #[inline]
    pub fn try_read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_hit(into, offset)?.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Copies bytes from `offset` on. Returns their number: fewer than requested only at the file's end.
    ///
    /// # Errors
    /// The device's error for bytes that are not cached; a range above the largest offset; a handle that was not opened
    /// for reading; a closed cache.
    #[inline]
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.read_hit(into, offset)? {
            Some(count) => Ok(count),
            None => self.read_blocking(into, offset),
        }
    }

    fn read_blocking(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.core().read_here(self.stripe(), &self.0.pages, offset, into)?;
        Ok(read.map_err(|error| self.said(error))?)
    }

    /// [`File::read_at`], awaited. If it is dropped before it ends, `into` may have some of the bytes, and the pages
    /// being read still come into the cache.
    ///
    /// # Errors
    /// As [`File::read_at`].
    pub async fn read_at_async(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.read_hit(into, offset)? {
            Some(count) => Ok(count),
            None => self.pass(pin!(self.read_work(into, offset))).await,
        }
    }

    #[inline]
    fn read_hit(&self, into: &mut [u8], offset: u64) -> Result<Option<usize>, Error> {
        self.check_readable()?;
        self.end_of(offset, into.len())?;
        Ok(self.0.engine.try_read(&self.0.pages, offset, into))
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

    /// [`File::read_exact_at`], awaited. If it is dropped, the effect is that of [`File::read_at_async`].
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

    /// Shows bytes in the cache, without a copy, if all of them are cached. Bytes past the file's end are left out.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if it would have to wait, or if [`Pages`] hold so many pages that these bytes must be
    /// copied. Otherwise as [`File::read_at`].
    #[inline]
    pub fn try_read_pinned(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        self.pinned_hit(range.start, len).ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Shows bytes without a copy. Bytes past the file's end are left out.
    ///
    /// Shown pages stay unchanged and in memory until the guard is dropped; a write of the same bytes goes to another
    /// page. So at most a quarter of the cache can be held this way. Beyond that the bytes are copied, and
    /// [`Pages::is_copy`] returns true.
    ///
    /// # Errors
    /// As [`File::read_at`]; [`ErrorKind::OutOfMemory`] if there is no memory for a copy.
    #[inline]
    pub fn read_pinned(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        if let Some(pages) = self.pinned_hit(range.start, len) {
            return Ok(pages);
        }
        self.read_pinned_blocking(range.start, len).map(|pages| *pages)
    }

    /// [`File::read_pinned`], awaited. If it is dropped before it ends, no page is held; the pages being read still
    /// come into the cache.
    ///
    /// # Errors
    /// As [`File::read_pinned`].
    pub async fn read_pinned_async(&self, range: Range<u64>) -> io::Result<Pages> {
        let len = self.pinned_len(&range)?;
        match self.pinned_hit(range.start, len) {
            Some(pages) => Ok(pages),
            None => self.pass(pin!(self.pinned_work(range.start, len))).await,
        }
    }

    /// The pages, if all of them are cached.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "what a call returns through memory is read back before it is there")]
    fn pinned_hit(&self, offset: u64, len: usize) -> Option<Pages> {
        if len == 0 {
            return Some(Pages::of_copy(Vec::new()));
        }
        self.0.engine.try_read_pinned(&self.0.pages, offset, len).map(Pages::pinned)
    }

    /// In a box, since a pointer is returned in a register: so the caller's pages of a hit need no memory.
    #[cold]
    fn read_pinned_blocking(&self, offset: u64, len: usize) -> io::Result<Box<Pages>> {
        self.block(pin!(self.pinned_work(offset, len))).map(Box::new)
    }

    async fn pinned_work(&self, offset: u64, len: usize) -> Result<Pages, Error> {
        let pinned = self.0.engine.read_pinned(&self.0.pages, offset, len).await;
        if let Some(pinned) = pinned.map_err(|error| self.said(error))? {
            return Ok(Pages::pinned(pinned));
        }
        let mut copy = Vec::new();
        let reserved = copy.try_reserve_exact(len);
        reserved.map_err(|_| Error::Host { path: self.path(), errno: Errno::NOMEM.raw_os_error() })?;
        copy.resize(len, 0);
        let count = self.read_work(&mut copy, offset).await?;
        copy.truncate(count);
        Ok(Pages::of_copy(copy))
    }

    /// Number of the range's bytes that the file has.
    fn pinned_len(&self, range: &Range<u64>) -> Result<usize, Error> {
        self.check_readable()?;
        self.range(range)?;
        let end = range.end.min(self.len());
        let len = end.saturating_sub(range.start);
        usize::try_from(len).map_err(|_| self.no_range(range.start.into(), range.end.into(), usize::MAX as u64))
    }
}

impl File {
    /// Overwrites bytes that are dirty in the cache already: a copy, without lock or system call.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if some of them are not dirty. Some may have been overwritten then; writing all of
    /// them again completes the write. Otherwise as [`File::write_at`].
    #[inline]
    pub fn try_write_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        self.end_of(offset, from.len())?;
        self.0.engine.try_write(&self.0.pages, offset, from).ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Writes all of `from` at `offset`; the file grows as needed. On return the bytes are in the cache, and every
    /// handle sees them. They are on the device after a successful sync, or otherwise after some time.
    ///
    /// Waits for room: the dirty bytes of a device are bounded, and so are the pages.
    ///
    /// # Errors
    /// No space on the device, or a device that keeps failing or [hangs](crate::guide#errors); the device's error for
    /// the rest of a block that is written in part; a range above the largest size; a handle that was not opened for
    /// writing; no descriptors left for the file's end ([`Error::OutOfDescriptors`](crate::Error::OutOfDescriptors)); a
    /// closed cache. A prefix of the bytes may have been written then.
    #[inline]
    pub fn write_at(&self, from: &[u8], offset: u64) -> io::Result<()> {
        if self.write_hit(from, offset)? { Ok(()) } else { self.block(pin!(self.write_work(from, offset))) }
    }

    /// [`File::write_at`], awaited. If it is dropped before it ends, a prefix of the bytes may have been written; the
    /// file may have grown by these.
    ///
    /// # Errors
    /// As [`File::write_at`].
    pub async fn write_at_async(&self, from: &[u8], offset: u64) -> io::Result<()> {
        if self.write_hit(from, offset)? { Ok(()) } else { self.pass(pin!(self.write_work(from, offset))).await }
    }

    /// Whether all bytes were in dirty pages, and are overwritten.
    #[inline]
    fn write_hit(&self, from: &[u8], offset: u64) -> Result<bool, Error> {
        self.check_writable()?;
        self.end_of(offset, from.len())?;
        Ok(self.0.engine.overwrite(&self.0.pages, offset, from) == from.len())
    }

    async fn write_work(&self, from: &[u8], offset: u64) -> Result<(), Error> {
        let (core, file) = (self.core(), &self.0.file);
        let end = offset.saturating_add(from.len() as u64);
        file.note_written();
        core.ensure_writable(file, end.max(self.len())).await?;
        self.0.engine.write(&self.0.pages, offset, from).await.map_err(|error| self.said(error))?;
        core.ensure_writable(file, end.max(self.len())).await
    }

    /// Writes at the file's end. Returns the offset. Appends take turns, so that two of them never overlap.
    ///
    /// # Errors
    /// As [`File::write_at`]: a part may have been appended.
    pub fn append(&self, from: &[u8]) -> io::Result<u64> {
        self.append_vectored(&[IoSlice::new(from)])
    }

    /// [`File::append`], awaited. If it is dropped before it ends, a prefix of the bytes may have been appended; other
    /// appends that wait go on.
    ///
    /// # Errors
    /// As [`File::append`].
    pub async fn append_async(&self, from: &[u8]) -> io::Result<u64> {
        self.append_vectored_async(&[IoSlice::new(from)]).await
    }
}

impl File {
    /// Makes all earlier writes to the file durable, with its size: `fdatasync`. This includes bytes that were written
    /// through other handles.
    ///
    /// The calling thread writes and flushes itself. On a disk that hangs it stays in a system call until the disk goes
    /// on, also if the cache is closed meanwhile. With the knob `hang_error_ms` other threads do this, and the call
    /// ends with an error after that time.
    ///
    /// # Errors
    /// The error of bytes that could not be written, even if they were written long before. They stay dirty and are
    /// tried again, and every sync fails until they are durable. So an error is never lost, and a later sync that
    /// succeeds can be trusted.
    pub fn sync_data(&self) -> io::Result<()> {
        self.block_here(pin!(self.core().sync(&self.0.file)))
    }

    /// [`File::sync_data`], awaited. If it is dropped before it ends, durability is unknown; the writing goes on.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub async fn sync_data_async(&self) -> io::Result<()> {
        self.pass(pin!(self.core().sync(&self.0.file))).await
    }

    /// [`File::sync_data`], and the file's times and mode with it: `fsync`.
    ///
    /// After a crash a new file is found only if its directory is durable, too; the cache has no part in that.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub fn sync_all(&self) -> io::Result<()> {
        self.block_here(pin!(self.sync_all_work()))
    }

    /// [`File::sync_all`], awaited. If it is dropped before it ends, durability is unknown.
    ///
    /// # Errors
    /// As [`File::sync_data`].
    pub async fn sync_all_async(&self) -> io::Result<()> {
        self.pass(pin!(self.sync_all_work())).await
    }

    async fn sync_all_work(&self) -> Result<(), Error> {
        let wanted = self.0.file.host.request_metadata_sync();
        self.core().sync(&self.0.file).await?;
        // If there was no byte to make durable, the host was not called.
        if self.0.file.host.is_metadata_synced(wanted) { Ok(()) } else { self.sync_host().await }
    }

    /// Makes the earlier writes to `range` durable, and the file's size.
    ///
    /// # Errors
    /// As [`File::sync_data`]; also for bytes outside of the range.
    pub fn sync_range(&self, range: Range<u64>) -> io::Result<()> {
        self.block(pin!(self.sync_range_work(range)))
    }

    /// [`File::sync_range`], awaited. If it is dropped before it ends, durability is unknown.
    ///
    /// # Errors
    /// As [`File::sync_range`].
    pub async fn sync_range_async(&self, range: Range<u64>) -> io::Result<()> {
        self.pass(pin!(self.sync_range_work(range))).await
    }

    async fn sync_range_work(&self, range: Range<u64>) -> Result<(), Error> {
        self.range(&range)?;
        if range.is_empty() {
            return Ok(());
        }
        self.0.engine.sync(&self.0.pages, range).await.map_err(|error| self.said(error))
    }

    /// Makes the file durable if the handle can write, and gives the handle back. Other handles stay.
    ///
    /// # Errors
    /// As [`File::sync_data`]. Bytes that are not durable stay dirty, and are written when possible.
    pub fn close(self) -> io::Result<()> {
        if self.0.rights.write { self.sync_data() } else { Ok(self.0.gate.check()?) }
    }

    /// [`File::close`], awaited. If it is dropped before it ends, the handle is given back, and durability is unknown.
    ///
    /// # Errors
    /// As [`File::close`].
    pub async fn close_async(self) -> io::Result<()> {
        if self.0.rights.write { self.sync_data_async().await } else { Ok(self.0.gate.check()?) }
    }
}
