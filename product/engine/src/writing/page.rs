//! A write's change of one page, in each of the page's states.
//!
//! Owns: the transitions to dirty, the choice between changing a page and replacing it, which sectors a write makes
//! valid.
//! Does not own: the resources that a write needs before (`write`), the copy itself (`cache::hit`).
//! Invariants: runs under the file's lock and waits for nothing. Bytes of a stable page do not change. Every byte that
//! becomes valid is written here or is zero on the device too.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_device::counters::Counter;
use afflux_device::platform::Platform;
use afflux_frames::{FRAME_BYTES, FrameId};
use afflux_pages::cache::hit::InPage;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::eviction::Admitted;
use afflux_pages::page::{
    DETACHED, DIRTY, FAILED, PRESENT, PRIOR, PageIdentity, READING, SECTOR_BYTES, Sectors, UPTODATE, WRITEBACK, WRITER,
};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use super::Writing;
use crate::devices::file::{FileInner, FileState};
use crate::writing::{PieceEnd, WriteResources};

/// One page's part of a write.
struct PageWrite<'a> {
    file: &'a Arc<FileInner>,
    at: InPage,
    bytes: &'a [u8],
    /// The sectors that the write dirties: whole blocks of the device.
    touched: Sectors,
    /// The sectors fully determined by the write, the file's end and the device's end.
    settled: Sectors,
}

impl<'a> PageWrite<'a> {
    fn new(file: &'a Arc<FileInner>, state: &FileState, at: InPage, bytes: &'a [u8]) -> Self {
        let range = at.range();
        let blocks_are_sectors = file.device.limits().block_bytes as usize == SECTOR_BYTES;
        let touched = if blocks_are_sectors { Sectors::touched(range.clone()) } else { Sectors::ALL };
        let in_page = |size: u64| size.saturating_sub(at.page * PAGE_BYTES).min(PAGE_BYTES) as usize;
        // Bytes past the file's end are zeros, so a write up to the end covers its last sector.
        let end = if range.end >= in_page(file.size()) { FRAME_BYTES } else { range.end };
        let past_host = Sectors::span(in_page(state.host.size()).div_ceil(SECTOR_BYTES), 8);
        let settled = Sectors::covered(range.start..end).union(past_host);
        Self { file, at, bytes, touched, settled }
    }

    fn identity(&self) -> PageIdentity {
        self.file.pages.identity(self.at.page)
    }

    /// The sectors that the write replaces as a whole.
    fn covered(&self) -> Sectors {
        Sectors::covered(self.at.range())
    }
}

impl<P: Platform> Writing<P> {
    /// Writes pages until a resource is missing; returns how many bytes, and the reason to stop.
    pub(super) fn write_pages(
        &self,
        file: &Arc<FileInner>,
        offset: u64,
        from: &[u8],
        mut means: WriteResources<'_, '_>,
    ) -> (usize, PieceEnd) {
        let mut state = lock(&file.state);
        let mut done = 0;
        while done < from.len() {
            if state.is_discarded() {
                return (done, PieceEnd::Discarded);
            }
            if state.host.is_cutting() {
                return (done, PieceEnd::Cutting);
            }
            let at = InPage::first(offset + done as u64, from.len() - done);
            let write = PageWrite::new(file, &state, at, &from[done..done + at.len]);
            if let Err(stop) = self.write_page(&mut state, &write, &mut means) {
                return (done, stop);
            }
            done += at.len;
            let end = offset + done as u64;
            if end > file.size() {
                file.keep_size(&mut state, end);
                file.pages.size.store(end, Ordering::Release);
            }
        }
        (done, PieceEnd::Done)
    }

    fn write_page(
        &self,
        state: &mut FileState,
        write: &PageWrite<'_>,
        means: &mut WriteResources<'_, '_>,
    ) -> Result<(), PieceEnd> {
        match self.base.cache.frame_at(&write.file.pages, write.at.page) {
            None => self.write_absent(state, write, means),
            Some(frame) => {
                let word = self.base.cache.pages.hold(frame, WRITER);
                let result = if word.is_stable() {
                    self.write_elsewhere(state, write, frame, means)
                } else {
                    self.write_in_place(state, write, frame, means)
                };
                if self.base.cache.pages.unhold(frame, WRITER).has(DETACHED) {
                    self.base.cache.release(frame);
                }
                result
            }
        }
    }

    fn write_absent(
        &self,
        state: &mut FileState,
        write: &PageWrite<'_>,
        means: &mut WriteResources<'_, '_>,
    ) -> Result<(), PieceEnd> {
        if !write.settled.contains(write.touched) {
            return Err(PieceEnd::Page(write.at.page));
        }
        let cache = &self.base.cache;
        let index = &write.file.pages.index;
        let reserved = index
            .reserve_nodes(&cache.nodes, write.at.page, || means.spare.take_for_index())
            .ok_or(PieceEnd::Frames)?;
        let frame = means.frame()?;
        let range = write.at.range();
        cache.zero(frame, 0..range.start);
        cache.zero(frame, range.end..FRAME_BYTES);
        cache.fill_bytes(frame, range.start, write.bytes);
        cache.pages.set_dirty(frame, write.touched);
        cache.pages.set_sectors(frame, Sectors::NONE);
        self.occupy(write, frame, 0);
        index.insert(&cache.nodes, write.at.page, frame, reserved);
        let runs = write.file.tag_dirty(state, write.at.page, true);
        cache.admit(&write.file.pages, write.at.page, frame, Admitted::Written);
        means.charge.spend(runs);
        self.note_dirtied(write.file, state, false);
        Ok(())
    }

    fn write_in_place(
        &self,
        state: &mut FileState,
        write: &PageWrite<'_>,
        frame: FrameId,
        means: &mut WriteResources<'_, '_>,
    ) -> Result<(), PieceEnd> {
        let cache = &self.base.cache;
        let valid = cache.pages.valid(frame);
        // The read that fills a frame would overwrite the bytes; a read that completes a page does not.
        let filling = cache.pages.word(frame).has_any(READING) && valid.is_empty();
        if filling || !valid.union(write.settled).contains(write.touched) {
            return Err(PieceEnd::Page(write.at.page));
        }
        self.zero_sectors(frame, write.settled.without(valid).without(write.covered()));
        cache.fill_bytes(frame, write.at.start, write.bytes);
        let uptodate = cache.pages.add_valid(frame, write.settled.union(write.touched));
        cache.pages.set_dirty(frame, cache.pages.dirty(frame).union(write.touched));
        let before = cache.pages.change(frame, 0, DIRTY | uptodate);
        if !before.has_any(DIRTY) {
            cache.eviction.dirtied(&cache.pages, frame);
            means.charge.spend(write.file.tag_dirty(state, write.at.page, true));
            self.note_dirtied(write.file, state, self.is_unflushed(write));
            cache.pages.touch(frame);
        } else {
            state.watch.note_changed();
            cache.pages.touch_overwritten(frame);
        }
        Ok(())
    }

    /// The page must not change in its frame: the new version goes to another frame.
    fn write_elsewhere(
        &self,
        state: &mut FileState,
        write: &PageWrite<'_>,
        old: FrameId,
        means: &mut WriteResources<'_, '_>,
    ) -> Result<(), PieceEnd> {
        let cache = &self.base.cache;
        let (word, valid) = (cache.pages.word(old), cache.pages.valid(old));
        if !valid.union(write.settled).contains(write.touched) {
            return Err(PieceEnd::Page(write.at.page));
        }
        let new = means.frame()?;
        // A writer that came before the page became stable may still be copying into it. The guard that made the page
        // stable may go at any moment: ours stays until the new version is in the index.
        if !cache.pages.try_freeze(old) {
            cache.unguard(old);
            cache.free_frame(new);
            return Err(PieceEnd::Busy);
        }
        for sector in valid.without(write.covered()).iter() {
            cache.copy_between(old, new, sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES);
        }
        self.zero_sectors(new, Sectors::ALL.without(valid).without(write.covered()));
        cache.fill_bytes(new, write.at.start, write.bytes);
        // Sectors in flight stay dirty in the new version: their write may fail.
        cache.pages.set_dirty(new, cache.pages.dirty(old).union(write.touched));
        let prior = if word.has_any(WRITEBACK | PRIOR) { PRIOR } else { 0 };
        cache.pages.set_sectors(new, cache.pages.unflushed(old));
        self.occupy(write, new, word.flags() & UPTODATE | prior);
        // Before a writer finds the new frame: a later process that finds both must take the new one.
        cache.pages.set_dirty(old, Sectors::NONE);
        write.file.pages.index.replace(&cache.nodes, write.at.page, new);
        let runs = write.file.tag_dirty(state, write.at.page, true);
        cache.eviction.replaced(&cache.pages, old, new);
        state.failures.remove_pages(u64::from(word.has(FAILED)));
        if word.has_any(DIRTY) {
            // The new version takes over the old one's charge.
            state.watch.note_changed();
        } else {
            means.charge.spend(runs);
            self.note_dirtied(write.file, state, word.has_any(WRITEBACK) || self.is_unflushed(write));
        }
        self.base.local().count(Counter::PagesCopiedStable, 1);
        cache.release_frame(old);
        cache.unguard(old);
        Ok(())
    }

    /// Makes a filled frame the page. Its dirty sectors are set.
    fn occupy(&self, write: &PageWrite<'_>, frame: FrameId, flags: u64) {
        let pages = &self.base.cache.pages;
        let uptodate =
            if flags & UPTODATE != 0 { UPTODATE } else { pages.add_valid(frame, write.settled.union(write.touched)) };
        pages.occupy(frame, write.identity(), PRESENT | DIRTY | uptodate | flags);
    }

    /// Whether the page was written, and no flush has followed.
    fn is_unflushed(&self, write: &PageWrite<'_>) -> bool {
        write.file.pages.index.has_tag(&self.base.cache.nodes, write.at.page, Tag::Unflushed)
    }

    /// A page has become dirty; `again`: it had just been written.
    fn note_dirtied(&self, file: &Arc<FileInner>, state: &mut FileState, again: bool) {
        let local = self.base.local();
        local.count(Counter::PagesDirtied, 1);
        local.count(Counter::PagesRedirtied, u64::from(again));
        state.watch.note_dirtied(again);
        file.note_dirtied(state, || self.base.now());
    }

    fn zero_sectors(&self, frame: FrameId, sectors: Sectors) {
        for sector in sectors.iter() {
            self.base.cache.zero(frame, sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES);
        }
    }
}
