//! Writing: overwrites of dirty pages at once, everything else under the file's lock.
//!
//! Owns: what a write does to a page in each of its states, and what it needs before: room in the
//! dirty budget, space on the device, frames, the rest of a sector it covers in part.
//! Does not own: the copy (`cache::hit`), the flusher.
//! Invariants: what is needed is got before the lock is taken; under it nothing waits. A page that a
//! device writes from, or that is shown to somebody, is replaced, not changed. Bytes are charged
//! before they are dirtied and marked dirty before the write is acknowledged.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use frames::{FRAME_BYTES, FrameId};

use crate::cache::PAGE_BYTES;
use crate::cache::file::{FileInner, FileState};
use crate::cache::hit::InPage;
use crate::cache::nodes::Tag;
use crate::cache::wait::lock;
use crate::counters::Counter;
use crate::dirty::Charge;
use crate::engine::{Engine, File};
use crate::error::{DeviceError, Error};
use crate::page::{
    DIRTY, FAILED, Identity, PRESENT, PRIOR, READING, SECTOR_BYTES, Sectors, UPTODATE, WRITEBACK, WRITER,
};
use crate::platform::Platform;
use crate::read::check_range;
use crate::reclaim::evict::Spare;
use crate::request::Operation;
use crate::settings::Knob;

/// Most bytes that are charged and written at a time.
const PIECE_BYTES: usize = 256 << 10;

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

/// What one page's write came to.
enum Wrote {
    Yes,
    No(Stop),
}

impl<P: Platform> Engine<P> {
    /// Overwrites bytes if all of them are in pages that are dirty already, and says so; if not, it
    /// may have overwritten some of them, which writing all of them again makes good. Takes no lock,
    /// makes no system call, allocates nothing.
    #[inline]
    pub fn try_write(&self, file: &File, offset: u64, from: &[u8]) -> Option<()> {
        check_range(offset, from.len()).ok()?;
        (self.overwrite_hits(&file.0, offset, from) == from.len()).then_some(())
    }

    /// Writes bytes at `offset`; the file grows as needed. Waits for room in the device's dirty
    /// budget, for frames, and for the rest of a sector that is covered in part. The bytes are in the
    /// cache on return, and durable after a [`Engine::sync`] that succeeds.
    ///
    /// An error means that a prefix may have been written: no space, a device that keeps failing, a
    /// read that failed, a range past the largest offset.
    pub async fn write(self: &Arc<Self>, file: &File, offset: u64, from: &[u8]) -> Result<(), Error> {
        check_range(offset, from.len())?;
        let mut done = 0;
        while done < from.len() {
            done += self.overwrite_hits(&file.0, offset + done as u64, &from[done..]);
            if done < from.len() {
                let piece = &from[done..from.len().min(done + self.piece_bytes())];
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
            if !self.cache().overwrite_hit(file, at, &from[done..]) {
                break;
            }
            done += at.len;
            pages += 1;
        }
        self.local().count(Counter::WriteHitPages, pages);
        done
    }

    /// How much is charged at a time: less when the limit is small, so that it is not overrun.
    fn piece_bytes(&self) -> usize {
        let pages = crate::dirty::limit_pages(self.cache()) / 4;
        ((pages.max(1) * PAGE_BYTES) as usize).min(PIECE_BYTES)
    }

    /// Writes at least one byte of the piece; returns how many.
    async fn write_piece(self: &Arc<Self>, file: &Arc<FileInner>, offset: u64, from: &[u8]) -> Result<usize, Error> {
        let range = offset..offset + from.len() as u64;
        let pages = FileInner::pages_of(&range);
        let count = pages.end - pages.start;
        let mut charge = self.charge(file, count).await?;
        self.reserve_space(file, &range).await?;
        let (mut done, mut frames_min) = (0, 0);
        loop {
            let mut left = FileInner::pages_of(&(offset + done as u64..range.end));
            let lacking = left.by_ref().filter(|page| self.needs_frame(file, *page)).count().max(frames_min);
            let mut spare = match lacking {
                0 => Spare::none(self.cache()),
                // A part of the cache at a time, so that many writers in a small one all get on.
                _ => self.take_frames(lacking.min((self.cache().frames.total() / 16).max(1) as usize)).await,
            };
            let (more, stop) = self.write_pages(file, offset + done as u64, &from[done..], &mut spare, &mut charge);
            drop(spare);
            done += more;
            match stop {
                Stop::Done => break,
                Stop::Discarded => return Err(Error::Discarded),
                Stop::Frames if done > 0 => break,
                Stop::Frames => frames_min = 1,
                Stop::Page(page) => self.bring(file, page..page + 1).await?,
                Stop::Cutting => file.queue.until(|| (!lock(&file.state).cutting).then_some(())).await,
                Stop::Busy => self.platform().preemption_point().await,
            }
        }
        drop(charge);
        self.wake_flusher_if_over(&file.device);
        Ok(done)
    }

    /// Waits until the device's dirty budget has room for so many pages.
    async fn charge(&self, file: &FileInner, pages: u64) -> Result<Charge, Error> {
        let device = &file.device;
        if !device.budget.try_take(pages) {
            if let Some(error) = device.keeps_failing() {
                return Err(error.into());
            }
            self.local().count(Counter::ThrottlePauses, 1);
            let began = self.platform().now();
            device.flusher.raise();
            let granted = device.budget.take(pages).await;
            self.local().count(Counter::ThrottleNs, self.platform().now().since(began));
            granted?;
        }
        Ok(Charge::granted(device, pages))
    }

    /// When the device's free space gets small, has it reserve the range before it is accepted, so
    /// that the writer learns of a full disk and not the flusher.
    async fn reserve_space(self: &Arc<Self>, file: &Arc<FileInner>, range: &Range<u64>) -> Result<(), Error> {
        let device = &file.device;
        let margin = device.knob(&self.cache().settings, Knob::ReserveBytes);
        let owed = device.budget.used() * PAGE_BYTES;
        if device.device.free_bytes_hint() >= margin.saturating_add(owed) {
            return Ok(());
        }
        let operation = Operation::Reserve { offset: range.start, len: range.end - range.start };
        match self.call(file, operation).await {
            Err(DeviceError::Unsupported) => Ok(()),
            other => other.map_err(Error::Device),
        }
    }

    fn needs_frame(&self, file: &FileInner, page: u64) -> bool {
        let frame = file.index.lookup(&self.cache().nodes, page);
        frame.is_none_or(|frame| !self.cache().pages.contains(frame) || self.cache().pages.word(frame).stable())
    }

    /// Writes pages under the file's lock until something is missing.
    fn write_pages(
        &self,
        file: &Arc<FileInner>,
        offset: u64,
        from: &[u8],
        spare: &mut Spare,
        charge: &mut Charge,
    ) -> (usize, Stop) {
        let mut state = lock(&file.state);
        let mut done = 0;
        while done < from.len() {
            if state.discarded {
                return (done, Stop::Discarded);
            }
            if state.cutting {
                return (done, Stop::Cutting);
            }
            let at = InPage::first(offset + done as u64, from.len() - done);
            let bytes = &from[done..done + at.len];
            if let Wrote::No(stop) = self.write_page(file, &mut state, at, bytes, spare, charge) {
                return (done, stop);
            }
            done += at.len;
            let end = offset + done as u64;
            if end > file.size() {
                file.size.store(end, Ordering::Release);
            }
        }
        (done, Stop::Done)
    }

    fn write_page(
        &self,
        file: &Arc<FileInner>,
        state: &mut FileState,
        at: InPage,
        bytes: &[u8],
        spare: &mut Spare,
        charge: &mut Charge,
    ) -> Wrote {
        let touched = self.touched_blocks(file, at);
        match self.cache().frame_at(file, at.page) {
            None => self.write_absent(file, state, at, bytes, touched, spare, charge),
            Some(frame) => self.write_present(file, state, at, bytes, touched, frame, spare, charge),
        }
    }

    /// The sectors that a write dirties: whole blocks of the device.
    fn touched_blocks(&self, file: &FileInner, at: InPage) -> Sectors {
        if file.device.device.limits().block_bytes as usize > SECTOR_BYTES {
            return Sectors::ALL;
        }
        Sectors::touched(at.range())
    }

    /// The sectors that the write, the file's end and the device's end leave no question about.
    fn settled_blocks(&self, file: &FileInner, state: &FileState, at: InPage) -> Sectors {
        let start = at.page * PAGE_BYTES;
        // Bytes past the file's end are zeros, so a write up to the end covers its last sector.
        let end_of_file = file.size().saturating_sub(start).min(PAGE_BYTES) as usize;
        let range = at.range();
        let end = if range.end >= end_of_file { FRAME_BYTES } else { range.end };
        let covered = Sectors::covered(range.start..end);
        let host_end = state.host_size.saturating_sub(start).min(PAGE_BYTES) as usize;
        let past_host = Sectors::span(host_end.div_ceil(SECTOR_BYTES), 8);
        covered.union(past_host)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one page write, named")]
    fn write_absent(
        &self,
        file: &Arc<FileInner>,
        state: &mut FileState,
        at: InPage,
        bytes: &[u8],
        touched: Sectors,
        spare: &mut Spare,
        charge: &mut Charge,
    ) -> Wrote {
        let settled = self.settled_blocks(file, state, at);
        if !settled.contains(touched) {
            return Wrote::No(Stop::Page(at.page));
        }
        let Some(frame) = spare.take() else {
            return Wrote::No(Stop::Frames);
        };
        let cache = self.cache();
        // Every byte that becomes valid is either written below or zero.
        cache.zero(frame, 0..at.start);
        cache.zero(frame, at.start + at.len..FRAME_BYTES);
        cache.fill_bytes(frame, at.start, bytes);
        let valid = settled.union(touched);
        cache.pages.set_valid(frame, valid);
        cache.pages.set_dirty(frame, touched);
        let uptodate = if valid == Sectors::ALL { UPTODATE } else { 0 };
        let identity = Identity { file: file.slot, index: at.page };
        cache.pages.occupy(frame, identity, PRESENT | DIRTY | uptodate);
        file.index.insert(&cache.nodes, at.page, frame);
        file.index.set_tag(&cache.nodes, at.page, Tag::Dirty, true);
        charge.spend();
        self.note_dirtied(file, state);
        Wrote::Yes
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one page write, named")]
    fn write_present(
        &self,
        file: &Arc<FileInner>,
        state: &mut FileState,
        at: InPage,
        bytes: &[u8],
        touched: Sectors,
        frame: FrameId,
        spare: &mut Spare,
        charge: &mut Charge,
    ) -> Wrote {
        let cache = self.cache();
        let word = cache.pages.hold(frame, WRITER);
        let valid = cache.pages.valid(frame);
        let known = valid.union(self.settled_blocks(file, state, at));
        let whole = at.len == FRAME_BYTES;
        // The read that fills a frame would overwrite the bytes; one that completes a page does not.
        let filling = word.any(READING) && valid.is_empty();
        let outcome = if filling || (!whole && !known.contains(touched)) {
            Wrote::No(Stop::Page(at.page))
        } else if word.stable() {
            self.write_elsewhere(file, state, at, bytes, touched, frame, spare, charge)
        } else {
            self.write_in_place(file, state, at, bytes, touched, frame, charge);
            Wrote::Yes
        };
        if cache.pages.unhold(frame, WRITER) {
            cache.release(frame);
        }
        outcome
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one page write, named")]
    fn write_in_place(
        &self,
        file: &Arc<FileInner>,
        state: &mut FileState,
        at: InPage,
        bytes: &[u8],
        touched: Sectors,
        frame: FrameId,
        charge: &mut Charge,
    ) {
        let cache = self.cache();
        let (valid, settled) = (cache.pages.valid(frame), self.settled_blocks(file, state, at));
        // Sectors that become valid around the bytes hold zeros there.
        for sector in (0..8).filter(|sector| {
            let one = Sectors::span(*sector, sector + 1);
            settled.contains(one) && !valid.contains(one)
        }) {
            cache.zero(frame, sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES);
        }
        cache.fill_bytes(frame, at.start, bytes);
        let valid = valid.union(settled).union(touched);
        cache.pages.set_valid(frame, valid);
        cache.pages.set_dirty(frame, cache.pages.dirty(frame).union(touched));
        let uptodate = if valid == Sectors::ALL { UPTODATE } else { 0 };
        let before = cache.pages.change(frame, 0, DIRTY | uptodate);
        if !before.any(DIRTY) {
            file.index.set_tag(&cache.nodes, at.page, Tag::Dirty, true);
            charge.spend();
            self.note_dirtied(file, state);
        }
        cache.pages.touch(frame);
    }

    /// The page must not change where it is: the new version goes to another frame.
    #[expect(clippy::too_many_arguments, reason = "the parts of one page write, named")]
    fn write_elsewhere(
        &self,
        file: &Arc<FileInner>,
        state: &mut FileState,
        at: InPage,
        bytes: &[u8],
        touched: Sectors,
        old: FrameId,
        spare: &mut Spare,
        charge: &mut Charge,
    ) -> Wrote {
        let cache = self.cache();
        let Some(new) = spare.take() else {
            return Wrote::No(Stop::Frames);
        };
        // A writer that came before the page became stable may still be copying into it.
        if cache.pages.word(old).other_writers() {
            cache.free_frame(new);
            return Wrote::No(Stop::Busy);
        }
        let (valid, settled) = (cache.pages.valid(old), self.settled_blocks(file, state, at));
        cache.zero(new, 0..FRAME_BYTES);
        for sector in (0..8).filter(|sector| valid.contains_span(*sector, sector + 1)) {
            cache.copy_between(old, new, sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES);
        }
        cache.fill_bytes(new, at.start, bytes);
        let valid = valid.union(settled).union(touched);
        let word = cache.pages.word(old);
        // Sectors in flight stay dirty in the new version: their write may fail.
        cache.pages.set_dirty(new, cache.pages.dirty(old).union(touched));
        cache.pages.set_valid(new, valid);
        let uptodate = if valid == Sectors::ALL { UPTODATE } else { 0 };
        let prior = if word.any(WRITEBACK | PRIOR) { PRIOR } else { 0 };
        let identity = Identity { file: file.slot, index: at.page };
        cache.pages.occupy(new, identity, PRESENT | DIRTY | uptodate | prior);
        file.index.insert(&cache.nodes, at.page, new);
        file.index.set_tag(&cache.nodes, at.page, Tag::Dirty, true);
        state.failed_pages -= u64::from(word.has(FAILED));
        if !word.any(DIRTY) {
            // Else it takes over the old one's place in the accounts.
            charge.spend();
            self.note_dirtied(file, state);
        }
        self.local().count(Counter::PagesCopiedStable, 1);
        cache.let_go(old);
        Wrote::Yes
    }
}
