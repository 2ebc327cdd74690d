//! Calls of jobs that bypass the cache and go straight to a simulated disk.
//!
//! Owns: the memory of such requests, the division of a call into them, the agreement of cache and disk.
//! Does not own: the disk's order and time; the time of a call (`runner`).
//! Invariants: a file's dirty pages are written before it is read or written past the cache, and its clean pages are
//! dropped before their next use. As with a kernel, the order of a cached and a direct call on the same bytes at the
//! same time is undefined.

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afflux_engine::{Client, Device, DeviceError, Error, Operation, PastCache, ProbeMemory, Request};
use afflux_frames::{ARENA_BYTES_MIN, FRAME_BYTES, Frames};
use afflux_reference::Ending;

use crate::contents::Contents;
use crate::locking::lock;
use crate::sequence::Direction;
use crate::simulated::{SimulatedSite, WorkFile};

/// A kernel's answer if offset or length is not a multiple of the disk's block.
const EINVAL: i32 = 22;
/// Frames that an allocator may reserve, beyond those for requests.
const SPARE_FRAMES: u64 = 4096;

/// The result of a request, and its memory.
type End = (Result<(), DeviceError>, Option<ProbeMemory>);

/// Passes a request's end to the task that waits for it.
#[derive(Default)]
struct Slot {
    end: Option<End>,
    waker: Option<Waker>,
}

async fn ended(slot: Arc<Mutex<Slot>>) -> End {
    poll_fn(|cx| {
        let mut slot = lock(&slot);
        match slot.end.take() {
            Some(end) => Poll::Ready(end),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

impl SimulatedSite {
    /// Reserves this much memory for simultaneous requests past the cache.
    pub(crate) fn reserve_past_cache(&self, bytes: u64) -> Result<(), String> {
        let frames = bytes / FRAME_BYTES as u64 + SPARE_FRAMES;
        let bytes = (frames * FRAME_BYTES as u64).max(ARENA_BYTES_MIN);
        let made = if self.kind == Contents::Exact { Frames::new(bytes) } else { Frames::new_stamped(bytes) };
        let made = made.map_err(|error| format!("memory for direct=1: {error}"))?;
        drop(self.past_cache.set(PastCache::new(Arc::new(made))));
        Ok(())
    }

    fn submit(&self, file: &WorkFile, operation: Operation, bytes: &[u8]) -> Result<Arc<Mutex<Slot>>, Error> {
        let frames = self.past_cache.get().ok_or(DeviceError::Unsupported)?;
        let slot = Arc::new(Mutex::new(Slot::default()));
        let told = Arc::clone(&slot);
        let done = move |result, memory| {
            let waker = {
                let mut slot = lock(&told);
                slot.end = Some((result, memory));
                slot.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        let disk = &self.volumes[file.volume].disk;
        let request = Request::past_cache(frames, file.backing.clone(), operation, bytes, done);
        disk.submit_direct(request);
        Ok(slot)
    }

    /// Reads or writes past the cache; returns the number of bytes.
    pub(crate) async fn direct(
        &self,
        task: &Client,
        file: &WorkFile,
        direction: Direction,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let limits = self.volumes[file.volume].disk.limits().clone();
        let block = u64::from(limits.block_bytes);
        if !offset.is_multiple_of(block) || !(buffer.len() as u64).is_multiple_of(block) {
            return Err(DeviceError::Io { errno: EINVAL }.into());
        }
        if file.file.dirty_bytes() > 0 {
            // Boxed, as it is rare and large: otherwise each call in flight would hold memory for it.
            Box::pin(self.engine.sync_for(Some(task), &file.file, 0..u64::MAX)).await?;
        }
        let writes = direction == Direction::Write;
        let mark = file.contents.as_ref().map(|contents| match writes {
            true => lock(contents).begin_write(offset, buffer),
            false => lock(contents).begin_read(),
        });
        if writes {
            file.changed_behind.store(true, Ordering::Relaxed);
        }
        let result = self.pieces(file, direction, offset, buffer, limits.request_bytes_max as usize).await;
        if writes {
            file.changed_behind.store(true, Ordering::Relaxed);
            file.unflushed.store(true, Ordering::Relaxed);
        }
        if let (Some(contents), Some(mark)) = (&file.contents, mark) {
            match writes {
                true => lock(contents).end_write(mark, if result.is_ok() { Ending::Done } else { Ending::Failed }),
                false => {
                    let got = result.as_ref().ok().map(|count| &buffer[..*count]);
                    let checked = lock(contents).end_read(mark, offset, buffer.len() as u64, got);
                    self.note(file, checked);
                }
            }
        }
        match (&result, writes) {
            (Ok(count), true) => self.accepted(file.volume, *count as u64),
            (Ok(count), false) => self.moved(*count as u64),
            _ => {}
        }
        result
    }

    /// Cuts a call into requests, which are in flight together.
    async fn pieces(
        &self,
        file: &WorkFile,
        direction: Direction,
        offset: u64,
        buffer: &mut [u8],
        piece_bytes_max: usize,
    ) -> Result<usize, Error> {
        let mut slots = Vec::new();
        for (at, piece) in buffer.chunks(piece_bytes_max).enumerate() {
            let offset = offset + (at * piece_bytes_max) as u64;
            let len = piece.len() as u32;
            slots.push(match direction {
                Direction::Read => self.submit(file, Operation::Read { offset, len }, &[])?,
                Direction::Write => self.submit(file, Operation::Write { offset, len }, piece)?,
                Direction::Trim => return Err(DeviceError::Unsupported.into()),
            });
        }
        let size = self.volumes[file.volume].disk.size(file.disk_file);
        let mut result = Ok(());
        for (slot, piece) in slots.into_iter().zip(buffer.chunks_mut(piece_bytes_max)) {
            let (end, memory) = ended(slot).await;
            // Without a check nobody uses the bytes.
            if let (Direction::Read, Some(memory), Some(_)) = (direction, memory, &file.contents) {
                memory.copy_to(piece);
            }
            result = result.and(end);
        }
        result?;
        let there = if direction == Direction::Read { size.saturating_sub(offset) } else { u64::MAX };
        Ok((buffer.len() as u64).min(there) as usize)
    }

    /// Makes writes past the cache durable.
    pub(crate) async fn flush_past_cache(&self, file: &WorkFile) -> Result<(), Error> {
        if !file.unflushed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let (end, _) = ended(self.submit(file, Operation::Sync, &[])?).await;
        Ok(end?)
    }

    /// Drops the cache's pages of a file that was written past the cache.
    #[inline]
    pub(crate) async fn after_others(&self, file: &WorkFile) {
        if file.changed_behind.load(Ordering::Relaxed) && file.changed_behind.swap(false, Ordering::Relaxed) {
            let size = self.volumes[file.volume].disk.size(file.disk_file);
            let seen = file.file.change_count();
            self.engine.try_invalidate(&file.file, size.max(file.file.size()), seen).await;
        }
    }
}
