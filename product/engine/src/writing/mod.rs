//! Writing: overwrites of dirty pages at once, everything else under the file's lock.
//!
//! Owns: the resources that a write needs before it takes the file's lock. These are a charge to the dirty budget,
//! space on the device, frames, and the rest of a partly covered sector. Also: what a piece of a write holds, and why
//! it stopped.
//! Does not own: the change of each page (`page`), the copy (`cache::hit`), the flusher.
//! Invariants: a write has all resources before it takes the lock; under the lock nothing waits. Bytes are charged
//! before they are dirtied, and the write is acknowledged after they are marked dirty. A piece that lacks something
//! leaves its page unchanged.

mod page;
mod space;

use std::sync::Arc;

use afflux_device::client::Client;
use afflux_device::counters::Counter;
use afflux_device::error::{Error, check_range};
use afflux_device::platform::Platform;
use afflux_frames::FrameId;
use afflux_pages::cache::hit::InPage;
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::base::Base;
use crate::devices::delays::Delay;
use crate::devices::file::FileInner;
use crate::dirty::Charge;
use crate::reading::Readings;
use crate::reclaim::{Reclaim, SpareFrames};
use crate::throttle::{PayingCall, Throttle};
use crate::writeback::Writeback;

pub(crate) struct Writing<P: Platform> {
    base: Base<P>,
    reclaim: Arc<Reclaim<P>>,
    reading: Arc<Readings<P>>,
    writeback: Arc<Writeback<P>>,
    throttle: Throttle<P>,
}

/// Overwrites the bytes if all of them are in dirty pages; returns how many, from the first on: all or none, as a rule.
/// If a flusher or a reader takes one of several pages at this moment, it may be a part of them.
#[inline]
pub(crate) fn overwrite<P: Platform>(base: &Base<P>, file: &FileInner, offset: u64, from: &[u8]) -> usize {
    if check_range(offset, from.len(), file.bytes_max).is_err() {
        return 0;
    }
    let at = InPage::first(offset, from.len());
    if at.len == from.len() && !from.is_empty() {
        let hit = base.cache.try_overwrite_hit(&file.pages, at, from);
        base.local().count(Counter::WriteHitPages, u64::from(hit));
        return if hit { from.len() } else { 0 };
    }
    if !may_overwrite(base, file, offset, from.len()) {
        base.cache.recall_for_write(&file.pages, FileInner::pages_of(&(offset..offset + from.len() as u64)));
        if !may_overwrite(base, file, offset, from.len()) {
            return 0;
        }
    }
    overwrite_hits(base, file, offset, from)
}

fn may_overwrite<P: Platform>(base: &Base<P>, file: &FileInner, offset: u64, len: usize) -> bool {
    let mut done = 0;
    while done < len {
        let at = InPage::first(offset + done as u64, len - done);
        if !base.cache.may_overwrite(&file.pages, at) {
            return false;
        }
        done += at.len;
    }
    true
}

/// Overwrites page by page, up to the first page where more than bytes would change; returns how many bytes.
#[inline]
fn overwrite_hits<P: Platform>(base: &Base<P>, file: &FileInner, offset: u64, from: &[u8]) -> usize {
    let (mut done, mut pages) = (0, 0);
    while done < from.len() {
        let at = InPage::first(offset + done as u64, from.len() - done);
        if !base.cache.try_overwrite_hit(&file.pages, at, &from[done..]) {
            break;
        }
        done += at.len;
        pages += 1;
    }
    base.local().count(Counter::WriteHitPages, pages);
    done
}

impl<P: Platform> Writing<P> {
    pub(crate) fn new(
        base: Base<P>,
        reclaim: Arc<Reclaim<P>>,
        reading: Arc<Readings<P>>,
        writeback: Arc<Writeback<P>>,
    ) -> Arc<Self> {
        let throttle = Throttle::new(base.clone());
        Arc::new(Self { base, reclaim, reading, writeback, throttle })
    }

    /// [`Engine::write`](crate::Engine::write).
    pub(crate) async fn write(
        &self,
        file: &Arc<FileInner>,
        client: Option<&Client>,
        offset: u64,
        from: &[u8],
    ) -> Result<(), Error> {
        check_range(offset, from.len(), file.bytes_max)?;
        let payer = self.throttle.paying(file, client);
        let mut done = 0;
        while done < from.len() {
            done += overwrite_hits(&self.base, file, offset + done as u64, &from[done..]);
            if done < from.len() {
                let piece = &from[done..from.len().min(done + self.piece_bytes(&payer))];
                let range = offset + done as u64..offset + (done + piece.len()) as u64;
                self.base.cache.recall_for_write(&file.pages, FileInner::pages_of(&range));
                match self.write_piece(&payer, offset + done as u64, piece).await {
                    Ok(written) => done += written,
                    // So much has failed since the wait began that smaller pieces are needed.
                    Err(Error::Device(_)) if piece.len() > self.piece_bytes(&payer) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn piece_bytes(&self, payer: &PayingCall<'_>) -> usize {
        let pages = if self.base.cache.rare.is_forced(Rare::SmallPiece) { 1 } else { self.throttle.piece_pages(payer) };
        (pages * PAGE_BYTES) as usize
    }

    /// Writes at least one byte of the piece; returns how many.
    async fn write_piece(&self, payer: &PayingCall<'_>, offset: u64, from: &[u8]) -> Result<usize, Error> {
        let file = payer.file;
        let range = offset..offset + from.len() as u64;
        let pages = FileInner::pages_of(&range);
        if file.is_withholding() {
            self.writeback.wait_to_withhold(file, &pages).await?;
        }
        let mut charge = self.throttle.charge(payer, pages).await?;
        self.reserve_space(file, &range).await?;
        let (mut done, mut frames_min, mut brought) = (0, 0, false);
        loop {
            let left = FileInner::pages_of(&(offset + done as u64..range.end));
            let lacking = if std::mem::take(&mut brought) {
                // Frames for the others might require evicting this page again, for ever.
                usize::from(self.needs_frame(file, left.start))
            } else {
                left.filter(|page| self.needs_frame(file, *page)).count().max(frames_min)
            };
            let mut spare = match lacking {
                0 => SpareFrames::none(&self.base.cache),
                // A part of the cache at a time, so that many writers in a small one all make progress.
                _ => {
                    let most = lacking.min((self.base.cache.total_pages() / 16).max(1) as usize);
                    payer.call.waits(&self.base, Delay::Reclaim, || self.reclaim.take_frames(most)).await
                }
            };
            spare.expect_copy();
            self.base.rare_yield().await;
            let (more, stop) = self.write_pages(
                file,
                offset + done as u64,
                &from[done..],
                WriteResources { spare: &mut spare, charge: &mut charge },
            );
            drop(spare);
            done += more;
            match stop {
                PieceEnd::Done => break,
                PieceEnd::Discarded => return Err(Error::Discarded),
                PieceEnd::Frames if done > 0 => break,
                PieceEnd::Frames => frames_min = 1,
                PieceEnd::Page(page) => {
                    let reading = self.reading.of(payer.call.file);
                    payer.call.waits(&self.base, Delay::Read, || reading.fetch(&payer.call, page..page + 1)).await?;
                    brought = true;
                }
                PieceEnd::Cutting => file.queue.until(|| (!lock(&file.state).host.is_cutting()).then_some(())).await,
                PieceEnd::Busy => self.base.pass().await,
            }
        }
        let dirtied = charge.spent();
        drop(charge);
        file.device.wake_flusher_if_over();
        self.throttle.balance(payer, &dirtied).await?;
        Ok(done)
    }

    fn needs_frame(&self, file: &FileInner, page: u64) -> bool {
        let frame = file.pages.index.lookup(&self.base.cache.nodes, page);
        frame
            .is_none_or(|frame| !self.base.cache.pages.contains(frame) || self.base.cache.pages.word(frame).is_stable())
    }
}

/// Why a piece stopped before its end.
enum PieceEnd {
    Done,
    /// More frames are needed than were taken.
    Frames,
    /// The page has to be read first, or a request for it has to end.
    Page(u64),
    /// A copy into the page, or out of it, is in progress.
    Busy,
    /// The file is being cut at this moment.
    Cutting,
    Discarded,
}

/// A write's resources for dirtying pages.
struct WriteResources<'a, 'c> {
    spare: &'a mut SpareFrames<'c>,
    charge: &'a mut Charge,
}

impl WriteResources<'_, '_> {
    /// A frame to fill. Prefetches the one after it meanwhile.
    fn frame(&mut self) -> Result<FrameId, PieceEnd> {
        let frame = self.spare.take().ok_or(PieceEnd::Frames)?;
        self.spare.expect_copy();
        Ok(frame)
    }
}
