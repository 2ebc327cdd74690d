//! Writing: overwrites of dirty pages at once, everything else under the file's lock.
//!
//! Owns: what a write needs before it takes the file's lock: room in the dirty budget, space on the
//! device, frames, the rest of a sector it covers in part.
//! Does not own: what it then does to each page (`page`), the copy (`cache::hit`), the flusher.
//! Invariants: what is needed is got before the lock is taken; under it nothing waits. Bytes are
//! charged before they are dirtied and marked dirty before the write is acknowledged.

mod page;
mod space;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use self::page::Means;
use crate::cache::PAGE_BYTES;
use crate::cache::file::FileInner;
use crate::cache::hit::InPage;
use crate::cache::wait::lock;
use crate::counters::Counter;
use crate::dirty::{Charge, failing, refresh_guard, try_take_anew};
use crate::engine::{Engine, File};
use crate::error::Error;
use crate::platform::Platform;
use crate::rare::Rare;
use crate::reclaim::evict::Spare;
use crate::throttle::PauseCause;
use crate::throttle::balance::NotedPause;

/// Most bytes that are charged and written at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Whether the device can keep a file with these bytes.
fn check_range(file: &FileInner, offset: u64, len: usize) -> Result<(), Error> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= file.bytes_max => Ok(()),
        _ => Err(Error::OutOfRange { offset, len: len as u64, max: file.bytes_max }),
    }
}

/// Why a piece stopped before its end.
enum Stop {
    Done,
    /// More frames are needed than were taken.
    Frames,
    /// The page has to be read, or a request for it to end, first.
    Page(u64),
    /// A copy into the page, or out of it, is in progress.
    Busy,
    /// The file is being cut at this moment.
    Cutting,
    Discarded,
}

impl<P: Platform> Engine<P> {
    /// Overwrites bytes if all of them are in pages that are dirty already, and says so; if not, it
    /// may have overwritten some of them, which writing all of them again makes good. Takes no lock,
    /// makes no system call, allocates nothing.
    #[inline]
    pub fn try_write(&self, file: &File, offset: u64, from: &[u8]) -> Option<()> {
        check_range(&file.0, offset, from.len()).ok()?;
        (self.overwrite(file, offset, from) == from.len()).then_some(())
    }

    /// As [`Engine::try_write`]; says how many bytes, from the first on, were overwritten. That is all of
    /// them or none, unless one of several pages was taken by a flusher or a reader in this very moment:
    /// then the caller has changed bytes, and whoever keeps times of the file has to note that.
    #[inline]
    pub fn overwrite(&self, file: &File, offset: u64, from: &[u8]) -> usize {
        if check_range(&file.0, offset, from.len()).is_err() {
            return 0;
        }
        let one_page = InPage::first(offset, from.len()).len == from.len();
        if !one_page && !self.could_overwrite(&file.0, offset, from.len()) {
            return 0;
        }
        self.overwrite_hits(&file.0, offset, from)
    }

    fn could_overwrite(&self, file: &FileInner, offset: u64, len: usize) -> bool {
        let mut done = 0;
        while done < len {
            let at = InPage::first(offset + done as u64, len - done);
            if !self.cache().could_overwrite(file, at) {
                return false;
            }
            done += at.len;
        }
        true
    }

    /// Writes bytes at `offset`; the file grows as needed. Waits for room in the device's dirty
    /// budget, for frames, and for the rest of a sector that is covered in part. The bytes are in the
    /// cache on return, and durable after a [`Engine::sync`] that succeeds.
    ///
    /// An error means that a prefix may have been written: no space, a device that keeps failing, a
    /// read that failed, a range past the largest offset.
    pub async fn write(self: &Arc<Self>, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        check_range(&file.0, offset, from.len())?;
        let mut done = 0;
        while done < from.len() {
            done += self.overwrite_hits(&file.0, offset + done as u64, &from[done..]);
            if done < from.len() {
                let piece = &from[done..from.len().min(done + self.piece_bytes(&file.0))];
                done += self.write_piece(&file.0, offset + done as u64, piece).await?;
            }
        }
        Ok(())
    }

    #[inline]
    fn overwrite_hits(&self, file: &FileInner, offset: u64, from: &[u8]) -> usize {
        let (mut done, mut pages) = (0, 0);
        while done < from.len() {
            let at = InPage::first(offset + done as u64, from.len() - done);
            if !self.cache().overwrite_hit::<P>(file, at, &from[done..]) {
                break;
            }
            done += at.len;
            pages += 1;
        }
        self.local().count(Counter::WriteHitPages, pages);
        done
    }

    /// How much is charged at a time: less when the limit is small, or the writer's allowance nearly
    /// used up, so that it is not overrun.
    fn piece_bytes(&self, file: &FileInner) -> usize {
        if self.cache().rare.strikes(Rare::SmallPiece) {
            return PAGE_BYTES as usize;
        }
        let mut pages = crate::dirty::limit_pages(self.cache()) / 4;
        if self.cache().ruling.is_some() {
            pages = pages.min(self.allowance_pages(file));
        }
        ((pages.max(1) * PAGE_BYTES) as usize).min(PIECE_BYTES)
    }

    /// Writes at least one byte of the piece; returns how many.
    async fn write_piece(self: &Arc<Self>, file: &Arc<FileInner>, offset: u64, from: &[u8]) -> Result<usize, Error> {
        let range = offset..offset + from.len() as u64;
        let pages = FileInner::pages_of(&range);
        let count = pages.end - pages.start;
        let mut charge = self.charge(file, count).await?;
        self.reserve_space(file, &range).await?;
        let (mut done, mut frames_min, mut brought) = (0, 0, false);
        loop {
            let left = FileInner::pages_of(&(offset + done as u64..range.end));
            let lacking = if std::mem::take(&mut brought) {
                // Frames for the others might be had only by evicting this page again, for ever.
                usize::from(self.needs_frame(file, left.start))
            } else {
                left.filter(|page| self.needs_frame(file, *page)).count().max(frames_min)
            };
            let mut spare = match lacking {
                0 => Spare::none(self.cache()),
                // A part of the cache at a time, so that many writers in a small one all get on.
                _ => self.take_frames(lacking.min((self.cache().frames.total() / 16).max(1) as usize)).await,
            };
            self.rare_yield().await;
            let (more, stop) = self.write_pages(
                file,
                offset + done as u64,
                &from[done..],
                Means { spare: &mut spare, charge: &mut charge },
            );
            drop(spare);
            done += more;
            match stop {
                Stop::Done => break,
                Stop::Discarded => return Err(Error::Discarded),
                Stop::Frames if done > 0 => break,
                Stop::Frames => frames_min = 1,
                Stop::Page(page) => {
                    self.bring(file, page..page + 1).await?;
                    brought = true;
                }
                Stop::Cutting => file.queue.until(|| (!lock(&file.state).cutting).then_some(())).await,
                Stop::Busy => self.platform().preemption_point().await,
            }
        }
        let dirtied = charge.spent();
        drop(charge);
        self.wake_flusher_if_over(&file.device);
        self.balance(file, dirtied).await?;
        Ok(done)
    }

    /// Waits until the device's dirty budget has room for so many pages: its part of the limit, or
    /// under a law the guard above it.
    async fn charge(&self, file: &FileInner, pages: u64) -> Result<Charge, Error> {
        let device = &file.device;
        loop {
            failing::admit(self.cache(), file, pages).await?;
            if device.budget.try_take(pages) || try_take_anew(self.cache(), device, pages) {
                break;
            }
            if let Some(error) = failing::keeps_failing(file).or_else(|| device.keeps_failing()) {
                return Err(error.into());
            }
            let cause = if self.cache().ruling.is_some() { PauseCause::MemoryGuard } else { PauseCause::DevicePart };
            let _noted = NotedPause::begins(self, device, cause, u64::MAX);
            let waits = self.cache().dirty.waits();
            let mut take = pin!(device.budget.take(pages));
            let granted = poll_fn(|cx| {
                let granted = take.as_mut().poll(cx);
                if granted.is_pending() {
                    // Not before it is in the queue: the flusher asks who waits.
                    device.flusher.raise();
                    // Nor this: what others gave back until now was told to nobody.
                    waits.is_queued();
                    refresh_guard(self.cache(), device);
                }
                granted
            })
            .await;
            // If not, something failed: perhaps neither this file nor the device.
            if granted.is_ok() {
                break;
            }
        }
        Ok(Charge::granted(device, pages))
    }

    fn needs_frame(&self, file: &FileInner, page: u64) -> bool {
        let frame = file.index.lookup(&self.cache().nodes, page);
        frame.is_none_or(|frame| !self.cache().pages.contains(frame) || self.cache().pages.word(frame).stable())
    }
}
