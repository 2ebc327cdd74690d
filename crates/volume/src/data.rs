//! Reading and writing a file's bytes.
//!
//! Owns: opening a file's bytes when they are first used, the limits of a range, sizes set by clients.
//! Does not own: pages, dirty limits, writing back (the engine); times of writes (`inode`).
//! Invariants: a hit asks the host nothing and takes no lock but the file's own. A write is taken only
//! once the tree has said that the file can be written.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use engine::{Error, FILE_BYTES_MAX, File, Platform};

use crate::attributes::{Attributes, Consistency, Kind, Outcome};
use crate::directory::Data;
use crate::error::VolumeError;
use crate::inode::Inode;
use crate::read::SharedPages;
use crate::volume::Volume;

/// The bytes of a read.
pub enum ReadBytes {
    /// In page frames, held stable until dropped.
    Pages(SharedPages),
    /// Copied, where too many frames are held already; or none.
    Copied(Bytes),
}

impl ReadBytes {
    /// How many bytes there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Pages(pages) => pages.len(),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a read gave.
pub struct ReadResult {
    /// The bytes: as many as were asked for, fewer only at the end of the file.
    pub bytes: ReadBytes,
    /// Whether the last byte of the file is among them or before them.
    pub end_of_file: bool,
    /// The attributes right after the read.
    pub attributes: Attributes,
}

impl<P: Platform> Volume<P> {
    /// Reads if it can be done without waiting: every page is in the cache. At most `len` bytes from
    /// `offset`, fewer only at the end of the file.
    #[inline]
    pub fn try_read(&self, inode: &Arc<Inode<P>>, offset: u64, len: u32) -> Option<ReadResult> {
        let file = inode.file()?;
        inode.used_now();
        let len = clamped(file, offset, len);
        let bytes = if len == 0 {
            ReadBytes::Copied(Bytes::new())
        } else {
            ReadBytes::Pages(self.engine.try_read_pinned(file, offset, len)?)
        };
        Some(finish(inode, file, offset, bytes))
    }

    /// Reads at most `len` bytes from `offset`, fewer only at the end of the file; past it, none.
    pub async fn read(&self, inode: &Arc<Inode<P>>, offset: u64, len: u32) -> Result<ReadResult, VolumeError> {
        require_regular(inode)?;
        inode.used_now();
        let file = self.opened(inode, false).await?;
        Ok(self.read_file(inode, file, offset, len).await?)
    }

    async fn read_file(&self, inode: &Arc<Inode<P>>, file: &File, offset: u64, len: u32) -> Result<ReadResult, Error> {
        let len = clamped(file, offset, len);
        let bytes = if len == 0 {
            ReadBytes::Copied(Bytes::new())
        } else {
            match self.engine.read_pinned(file, offset, len).await? {
                Some(pages) => ReadBytes::Pages(pages),
                None => {
                    let mut copied = vec![0; len];
                    let read = self.engine.read(file, offset, &mut copied).await?;
                    copied.truncate(read);
                    ReadBytes::Copied(Bytes::from(copied))
                }
            }
        };
        Ok(finish(inode, file, offset, bytes))
    }

    /// Writes all of `data` if it can be done without waiting, else nothing. Not durable.
    #[inline]
    pub fn try_write(&self, inode: &Arc<Inode<P>>, offset: u64, data: &[u8]) -> Option<Consistency> {
        let file = inode.writable_file()?;
        inode.used_now();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        self.engine.try_write(file, offset, data)?;
        if data.is_empty() {
            return Some(inode.unchanged());
        }
        let consistency = inode.written(self.wall());
        self.settle_later(inode);
        Some(consistency)
    }

    /// Writes all of `data`, or fails (a beginning may have been written). Waits where the device has
    /// too much unwritten. Not durable: see [`Volume::sync`].
    pub async fn write(&self, inode: &Arc<Inode<P>>, offset: u64, data: Bytes) -> Outcome<()> {
        let result = self.write_bytes(inode, offset, &data).await;
        match result {
            Ok(true) => {
                let consistency = inode.written(self.wall());
                self.settle_later(inode);
                Outcome { result: Ok(()), consistency }
            }
            Ok(false) => Outcome { result: Ok(()), consistency: inode.unchanged() },
            Err(error) => {
                // A beginning may have been written: the times must tell.
                if inode.writable_file().is_some_and(|file| !file.is_clean()) {
                    inode.written(self.wall());
                    self.settle_later(inode);
                }
                Outcome { result: Err(error), consistency: inode.unchanged() }
            }
        }
    }

    /// True if there was something to write.
    async fn write_bytes(&self, inode: &Arc<Inode<P>>, offset: u64, data: &[u8]) -> Result<bool, VolumeError> {
        require_regular(inode)?;
        inode.used_now();
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= FILE_BYTES_MAX);
        end.ok_or(VolumeError::TooLarge)?;
        if inode.is_removed() {
            return Err(VolumeError::Stale);
        }
        let file = self.opened(inode, true).await?;
        if data.is_empty() {
            return Ok(false);
        }
        inode.changes.fetch_add(1, Ordering::Relaxed);
        self.engine.write(file, offset, data).await?;
        Ok(true)
    }

    /// Sets the size, with `changing` held. On the host too on return, not yet durable.
    pub(crate) async fn set_size(&self, inode: &Arc<Inode<P>>, size: u64) -> Result<(), VolumeError> {
        require_regular(inode)?;
        if size > FILE_BYTES_MAX {
            return Err(VolumeError::TooLarge);
        }
        let file = self.opened(inode, true).await?;
        inode.changes.fetch_add(1, Ordering::Relaxed);
        self.engine.set_size(file, size).await?;
        inode.written(self.wall());
        self.settle_later(inode);
        Ok(())
    }

    /// The engine's file, opened now if it was not; if it `must_write`, one that can be written.
    pub(crate) async fn opened<'a>(&self, inode: &'a Arc<Inode<P>>, must_write: bool) -> Result<&'a File, VolumeError> {
        let current = |inode: &'a Inode<P>| {
            if must_write { inode.writable_file() } else { inode.file() }
        };
        if let Some(file) = current(inode) {
            return Ok(file);
        }
        self.make_room().await;
        let _opening = inode.opening.lock().await;
        if let Some(file) = current(inode) {
            return Ok(file);
        }
        let changes = inode.changes.load(Ordering::Relaxed);
        let data = self.tree.open_data(&inode.node, must_write).await?;
        let (stat, writable) = (data.stat, data.writable);
        if inode.file().is_none() {
            self.attach(inode, data)?;
            // Where others changed the file meanwhile, the engine starts with what is there now.
            inode.observe(stat, changes, self.now());
        }
        if writable {
            inode.allow_writing();
        }
        current(inode).ok_or(VolumeError::Denied)
    }

    /// Gives a file that was just made its engine file, unless somebody who found it was faster.
    pub(crate) async fn attach_made(&self, inode: &Arc<Inode<P>>, data: Data) -> Result<(), VolumeError> {
        let _opening = inode.opening.lock().await;
        if inode.file().is_none() {
            self.attach(inode, data)?;
            inode.allow_writing();
        }
        Ok(())
    }

    /// Gives an inode its engine file.
    fn attach(&self, inode: &Arc<Inode<P>>, data: Data) -> Result<(), VolumeError> {
        let device = self.device(inode.device, &inode.node)?;
        let file = self.engine.open(device, data.backing, data.stat.size);
        inode.opened(file);
        Ok(())
    }
}

/// `len`, or what is left of the file after `offset`.
#[inline]
fn clamped(file: &File, offset: u64, len: u32) -> usize {
    u64::from(len).min(file.size().saturating_sub(offset)) as usize
}

#[inline]
fn finish<P: Platform>(inode: &Inode<P>, file: &File, offset: u64, bytes: ReadBytes) -> ReadResult {
    let end_of_file = offset.saturating_add(bytes.len() as u64) >= file.size();
    ReadResult { bytes, end_of_file, attributes: inode.attributes() }
}

pub(crate) fn require_regular<P: Platform>(inode: &Inode<P>) -> Result<(), VolumeError> {
    match inode.kind() {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(VolumeError::IsDirectory),
        Kind::Symlink => Err(VolumeError::Symlink),
        _ => Err(VolumeError::Invalid { what: "not a regular file" }),
    }
}
