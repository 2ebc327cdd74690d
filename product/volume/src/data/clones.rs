//! Copies inside the server: a clone, a range of a file whose blocks another range has, too; or bytes that move.
//!
//! Owns: which ranges can be cloned, the order of the steps, the pieces of a copy.
//! Does not own: the sharing of blocks (the tree), the pages of the target and its size (the engine), when a front end
//! asks for either and how much one call may move.
//! Invariants: a clone has all bytes of the source that were acknowledged before it (`a_clone_has_dirty_bytes`). Whole
//! blocks are shared, never copied. The bytes of the source's last, partial block are copied: the host could share that
//! block only with the end of another file. An error leaves the whole blocks of the target as they were.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::{Client, Platform};
use bytes::Bytes;

use crate::data::read_write::{BytesBefore, ReadBytes};
use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::rights::Use;
use crate::tree::attributes::{Consistency, Outcome};
use crate::tree::caller::Caller;
use crate::volume::{STOPPED, Volume};

/// The unit of a clone, bytes: offsets are multiples of it. The host may have a larger one, and refuses then.
pub const CLONE_BLOCK_BYTES: u32 = 4096;

/// Bytes that a copy moves before other calls run.
const PIECE_BYTES: u64 = 64 << 10;

/// One side of a clone or a copy: a file, the caller who may read or write it, the first byte.
pub struct CloneSide<'a, P: Platform> {
    /// Asked for the right to read the source, or to write the target.
    pub caller: &'a Caller,
    /// A regular file.
    pub inode: &'a Arc<Inode<P>>,
    /// Byte offset. For a clone a multiple of [`CLONE_BLOCK_BYTES`].
    pub offset: u64,
}

impl<P: Platform> CloneSide<'_, P> {
    /// The same, from so many bytes later on.
    fn after(&self, bytes: u64) -> Self {
        Self { caller: self.caller, inode: self.inode, offset: self.offset + bytes }
    }
}

/// A clone that runs to its end also if its caller goes away.
struct CloneWork<P: Platform> {
    reader: Caller,
    source: Arc<Inode<P>>,
    from: Range<u64>,
    writer: Caller,
    target: Arc<Inode<P>>,
    to: u64,
}

impl<P: Platform> CloneWork<P> {
    /// The bytes in whole blocks.
    fn whole_bytes(&self) -> u64 {
        (self.from.end - self.from.start) / BLOCK * BLOCK
    }

    /// Refuses ranges that cannot be cloned, once the size of the source is known.
    fn check(&self, source_bytes: u64, target_bytes_max: u64) -> Result<(), VolumeError> {
        let len = self.from.end - self.from.start;
        let is_aligned = [self.from.start, self.to].into_iter().all(|offset| offset.is_multiple_of(BLOCK));
        if !is_aligned || !len.is_multiple_of(BLOCK) && self.from.end != source_bytes {
            return Err(VolumeError::Invalid { what: "a clone that does not begin and end at multiples of 4096" });
        }
        if self.from.end > source_bytes {
            return Err(VolumeError::Invalid { what: "a clone past the end of its source" });
        }
        if Arc::ptr_eq(&self.source, &self.target) && self.from.start.abs_diff(self.to) < len {
            return Err(VolumeError::Invalid { what: "a clone over its own source" });
        }
        let end = self.to.checked_add(len);
        if end.is_none_or(|end| end > target_bytes_max) { Err(VolumeError::TooLarge) } else { Ok(()) }
    }
}

const BLOCK: u64 = CLONE_BLOCK_BYTES as u64;

impl<P: Platform> Volume<P> {
    /// Makes `len` bytes of the target those of the source, without moving whole blocks; `len` 0: all to the source's
    /// end. A target that ends before grows. The length is a multiple of [`CLONE_BLOCK_BYTES`], or reaches the end of
    /// the source. Waits for the source's and the target's dirty pages of the ranges. Not durable: see
    /// [`Volume::sync`].
    ///
    /// # Errors
    /// Those of a read and a write. [`VolumeError::NotSupported`] if the file system shares no blocks.
    /// [`VolumeError::CrossDevice`] between two file systems. [`VolumeError::Invalid`] for offsets that are not
    /// aligned, for a range past the source's end, and for ranges of one file that overlap.
    pub async fn clone_by(&self, from: CloneSide<'_, P>, to: CloneSide<'_, P>, len: u64) -> Outcome<()> {
        let target = to.inode;
        match self.clone_checked(&from, &to, len).await {
            Ok(consistency) => Outcome { result: Ok(()), consistency },
            Err(error) => Outcome { result: Err(error), consistency: target.unchanged() },
        }
    }

    /// Copies up to `len` bytes of the source to the target. The file system shares the bytes if it can; otherwise this
    /// moves at most `moved_max` bytes. The copy ends at the source's end and at the largest size of the target.
    /// Returns how many bytes were copied. Ranges of one file do not overlap. The reads and writes count for `client`.
    /// Waits for reads, and for space in the cache. Not durable.
    ///
    /// # Errors
    /// Those of a read and a write, if no byte was copied before.
    pub async fn copy_by(
        &self,
        from: CloneSide<'_, P>,
        to: CloneSide<'_, P>,
        client: &Client,
        len: u64,
        moved_max: u64,
    ) -> Result<u64, VolumeError> {
        // To move the bytes also meets an error that a clone has met.
        if len > 0 && self.clone_checked(&from, &to, len).await.is_ok() {
            return Ok(len);
        }
        let target_room = self.file_bytes_max(to.inode).await.saturating_sub(to.offset);
        if target_room == 0 && len > 0 {
            return Err(VolumeError::TooLarge);
        }
        let most = len.min(moved_max).min(target_room);
        let mut moved = 0;
        while moved < most {
            let piece = (most - moved).min(PIECE_BYTES) as u32;
            match self.move_bytes(from.after(moved), to.after(moved), Some(client), piece).await {
                Ok((0, _)) => break,
                Ok((bytes, _)) => moved += bytes,
                Err(_) if moved > 0 => break,
                Err(error) => return Err(error),
            }
            self.engine.platform().preemption_point().await;
        }
        Ok(moved)
    }

    /// Returns how many bytes moved: fewer only at the source's end.
    async fn move_bytes(
        &self,
        from: CloneSide<'_, P>,
        to: CloneSide<'_, P>,
        client: Option<&Client>,
        len: u32,
    ) -> Result<(u64, Consistency), VolumeError> {
        let bytes = match self.read_by(from.caller, client, from.inode, from.offset, len).await?.bytes {
            ReadBytes::Copied(bytes) => bytes,
            ReadBytes::Pages(pages) => Bytes::from(pages.slices().collect::<Vec<_>>().concat()),
        };
        let written = self.write_by(to.caller, client, to.inode, to.offset, &bytes).await;
        written.result.map(|()| (bytes.len() as u64, written.consistency))
    }

    async fn clone_checked(
        &self,
        from: &CloneSide<'_, P>,
        to: &CloneSide<'_, P>,
        len: u64,
    ) -> Result<Consistency, VolumeError> {
        from.inode.require_regular()?;
        to.inode.require_regular()?;
        self.permit(from.inode, from.caller, Use::Read).await?;
        self.permit(to.inode, to.caller, Use::Write).await?;
        let size = self.attributes(from.inode).await?.size;
        let end = if len == 0 { Some(size.max(from.offset)) } else { from.offset.checked_add(len) };
        let work = CloneWork {
            reader: from.caller.clone(),
            source: Arc::clone(from.inode),
            from: from.offset..end.ok_or(VolumeError::TooLarge)?,
            writer: to.caller.clone(),
            target: Arc::clone(to.inode),
            to: to.offset,
        };
        work.check(size, self.file_bytes_max(to.inode).await)?;
        let begun = self.begin_change(to.caller, to.inode).await?;
        let work = |volume: Arc<Self>| async move {
            let _begun = begun;
            volume.clone_now(work).await
        };
        self.carried_through("clone", work).await.unwrap_or(Err(STOPPED))
    }

    async fn clone_now(self: Arc<Self>, work: CloneWork<P>) -> Result<Consistency, VolumeError> {
        let whole = work.whole_bytes();
        let cloned = self.share_blocks(&work, whole).await?;
        let rest = (work.from.end - work.from.start - whole) as u32;
        if rest == 0 {
            return Ok(cloned);
        }
        let from = CloneSide { caller: &work.reader, inode: &work.source, offset: work.from.start + whole };
        let to = CloneSide { caller: &work.writer, inode: &work.target, offset: work.to + whole };
        let (_, moved) = self.move_bytes(from, to, None, rest).await?;
        Ok(cloned.then(moved))
    }

    /// Shares the first bytes of the range, in whole blocks. First it asks whether the tree could: until then nothing
    /// is written back.
    async fn share_blocks(self: &Arc<Self>, work: &CloneWork<P>, whole: u64) -> Result<Consistency, VolumeError> {
        let CloneWork { source, target, .. } = work;
        let (from, to) = (source.node.used_by(&work.reader), target.node.used_by(&work.writer));
        let (start, range) = (work.from.start, work.to..work.to + whole);
        self.tree.share_blocks(&from, start, &to, work.to..work.to).await?;
        if whole == 0 {
            return Ok(target.unchanged());
        }
        self.write_back(source, start, whole).await?;
        if target.has_ended() || source.has_ended() {
            return Err(VolumeError::Stale);
        }
        let changing = target.changing.lock().await;
        let file = self.opened(&work.writer, target, true).await?;
        self.write_back(target, work.to, whole).await?;
        let taken = self.take_privileges(target, false).await?;
        target.changes.fetch_add(1, Ordering::Relaxed);
        let before = BytesBefore::of(file);
        let volume = Arc::clone(self);
        let shared = range.clone();
        let share = async move { volume.tree.share_blocks(&from, start, &to, shared).await };
        let shared = self.engine.replace_range(file, range, share).await;
        if !matches!(shared, Ok(Ok(()))) && !before.may_have_changed(file) {
            return shared?.map(|()| target.unchanged());
        }
        let reshaped = self.reshaped(target).await;
        drop(changing);
        self.tell_bytes(&work.writer, target);
        shared??;
        Ok(taken.map_or(reshaped, |(taken, _)| taken.then(reshaped)))
    }

    /// Has the tree find the acknowledged bytes of a range.
    async fn write_back(&self, inode: &Arc<Inode<P>>, offset: u64, len: u64) -> Result<(), VolumeError> {
        if inode.is_clean() { Ok(()) } else { self.sync_bytes(None, inode, offset, len).await }
    }
}
