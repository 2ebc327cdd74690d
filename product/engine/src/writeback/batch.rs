//! Which bytes the next write request carries: one run of a file's dirty pages. Also which pages the device does not
//! have yet.
//!
//! Owns: finding the run, moving its pages from dirty to writeback; the search for the next run that the device lacks.
//! Does not own: which file (`flusher`), submitting, the outcome (`complete`).
//! Invariants: a run is contiguous in the file and every byte of it is valid. Pages being written to or filled are
//! written later, and so are pages with an older version in flight. The run ends at the file's end, not after it. A run
//! has only bytes that were written to, up to whole blocks of the device: clean bytes here may have changed on the
//! host. The device lacks a page from the acknowledged write until it has completed the write of it. The search holds
//! the lock for a bounded number of pages.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::platform::Platform;
use afflux_frames::{FRAME_BYTES, FrameId};
use afflux_pages::cache::PageCache;
use afflux_pages::cache::nodes::Tag;
use afflux_pages::memory::{FrameMemory, Piece, Pieces};
use afflux_pages::page::{DIRTY, FAILED, PRIOR, READING, SECTOR_BYTES, Sectors, WRITEBACK};
use afflux_pages::rare::Rare;
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::devices::file::{FileInner, FileState};
use crate::writeback::Writeback;

/// A run whose pages are now under writeback.
pub(super) struct Run {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) memory: FrameMemory,
    pub(super) sequence: u64,
    pub(super) pages: u64,
    /// Whether it begins where the last request ended, which is in flight: the device need not seek to it.
    pub(super) continues: bool,
}

/// The rest of a file after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileRemainder {
    /// There may be more to write.
    More,
    /// No page, except pages that wait for a completion, which queues the file again.
    Nothing,
    /// Only pages that a writer is copying to at this moment.
    Busy,
    /// The file failed lately, and is written only for syncs.
    Paused,
}

/// Claims the next run with the tag from the file's cursor on, at most `bytes_max` long.
///
/// # Errors
/// The rest of the file if there is no run.
pub(super) fn claim(file: &FileInner, state: &mut FileState, tag: Tag, bytes_max: u32) -> Result<Run, FileRemainder> {
    if state.is_held() {
        return Err(FileRemainder::Nothing);
    }
    let cursor = state.position.cursor();
    let (size, pieces) = (file.size(), Pieces::default());
    let mut claimer = Claimer { cache: &file.cache, file, size, state, pieces, busy: false };
    let first = claimer.first(cursor, u64::MAX, tag).or_else(|| claimer.first(0, cursor, tag));
    let Some((first_page, span)) = first else {
        return Err(if claimer.busy { FileRemainder::Busy } else { FileRemainder::Nothing });
    };
    let pages_max = u64::from(bytes_max) / PAGE_BYTES;
    let mut end = span.1;
    let mut next = first_page + 1;
    while end == FRAME_BYTES && next - first_page < pages_max && !file.cache.rare.is_forced(Rare::ShortRun) {
        let Some(more) = claimer.follow(next) else { break };
        (end, next) = (more, next + 1);
    }
    let Claimer { state, pieces, .. } = claimer;
    let continues = state.position.does_follow(first_page) && state.flight.has_writes();
    state.position.claimed_to(next);
    let offset = first_page * PAGE_BYTES + span.0 as u64;
    let len: u32 = pieces.iter().map(|piece| u32::from(piece.len)).sum();
    let pages = next - first_page;
    let sequence = state.flight.write_begins(pages);
    let memory = FrameMemory::new(Arc::clone(&file.cache.arena), pieces);
    Ok(Run { offset, len, memory, sequence, pages, continues })
}

struct Claimer<'a> {
    cache: &'a PageCache,
    file: &'a FileInner,
    size: u64,
    state: &'a mut FileState,
    pieces: Pieces,
    busy: bool,
}

impl Claimer<'_> {
    /// Claims the first possible page from `from` up to `end`, and returns its span of bytes.
    fn first(&mut self, from: u64, end: u64, tag: Tag) -> Option<(u64, (usize, usize))> {
        let mut page = self.file.pages.index.next_tagged(&self.cache.nodes, from, tag)?;
        while page < end {
            if let Some(frame) = self.cache.frame_at(&self.file.pages, page) {
                let (first, last) = self.span(page, frame);
                if first < last && self.try_claim(page, frame, (first, last)) {
                    self.push(frame, first, last);
                    return Some((page, (first, last)));
                }
            }
            page = self.file.pages.index.next_tagged(&self.cache.nodes, page + 1, tag)?;
        }
        None
    }

    /// Claims the page after a run that reached its predecessor's end, if the page is dirty and valid from its first
    /// byte; returns the end of its bytes.
    fn follow(&mut self, page: u64) -> Option<usize> {
        if !self.file.pages.index.has_tag(&self.cache.nodes, page, Tag::Dirty) {
            return None;
        }
        let frame = self.cache.frame_at(&self.file.pages, page)?;
        if !self.carried_sectors(frame).has_span(0, self.cache.pages.dirty(frame).first()) {
            return None;
        }
        let (_, last) = self.span(page, frame);
        if !self.try_claim(page, frame, (0, last)) {
            return None;
        }
        self.push(frame, 0, last);
        Some(last)
    }

    /// The sectors of a page that a request may carry.
    fn carried_sectors(&self, frame: FrameId) -> Sectors {
        let (dirty, valid) = (self.cache.pages.dirty(frame), self.cache.pages.valid(frame));
        if self.needs_whole_pages() { valid } else { valid.intersection(dirty) }
    }

    fn needs_whole_pages(&self) -> bool {
        self.file.device.limits().block_bytes as usize > SECTOR_BYTES
    }

    /// The bytes of the page to write: from its first dirty sector to its last, or to the end of the sectors that a
    /// request may carry. The rest is written another time.
    fn span(&self, page: u64, frame: FrameId) -> (usize, usize) {
        let (mut dirty, valid) = (self.cache.pages.dirty(frame), self.carried_sectors(frame));
        if self.needs_whole_pages() {
            // The file's end may have been in the page's only block when it was written last.
            dirty = Sectors::ALL;
        }
        if dirty == Sectors::ALL && valid == Sectors::ALL {
            return (0, self.in_file(page));
        }
        let first = dirty.first();
        let mut last = first;
        while last < dirty.end() && valid.has_span(last, last + 1) {
            last += 1;
        }
        // Valid sectors up to the end let the run go on into the next page.
        if last == dirty.end() && valid.has_span(last, 8) && self.is_next_dirty(page) {
            last = 8;
        }
        let in_file = self.in_file(page);
        let first = first * SECTOR_BYTES;
        (first, (last * SECTOR_BYTES).min(in_file).max(first))
    }

    /// Sectors entirely past the file's end are zeros here and on the device. A run stops at the end, and would leave
    /// them dirty for ever although there is nothing to write.
    fn forget_past_end(&self, page: u64, frame: FrameId) {
        let in_file = Sectors::touched(0..self.in_file(page));
        let dirty = self.cache.pages.dirty(frame);
        self.cache.pages.set_dirty(frame, dirty.intersection(in_file));
    }

    fn in_file(&self, page: u64) -> usize {
        self.size.saturating_sub(page * PAGE_BYTES).min(PAGE_BYTES) as usize
    }

    fn is_next_dirty(&self, page: u64) -> bool {
        self.file.pages.index.has_tag(&self.cache.nodes, page + 1, Tag::Dirty)
    }

    fn try_claim(&mut self, page: u64, frame: FrameId, span: (usize, usize)) -> bool {
        self.forget_past_end(page, frame);
        // Sectors outside this run stay dirty. A sync that marked the page waits for them; a sync that comes while the
        // run is in flight marks the page.
        let whole = Sectors::touched(span.0..span.1).contains(self.cache.pages.dirty(frame));
        let result = self.cache.pages.change_unless(frame, PRIOR | READING | WRITEBACK, DIRTY, WRITEBACK);
        match result {
            Ok(_) => {
                if whole {
                    self.file.untag(self.state, page);
                }
                true
            }
            Err(word) => {
                self.busy |= word.is_being_written_to();
                false
            }
        }
    }

    fn push(&mut self, frame: FrameId, first: usize, last: usize) {
        self.pieces.push(Piece { frame, start: first as u16, len: (last - first) as u16 });
    }
}

/// The sectors of its page that a piece carries.
pub(super) fn sectors_of(piece: &Piece) -> Sectors {
    Sectors::touched(usize::from(piece.start)..usize::from(piece.start) + usize::from(piece.len))
}

/// The most pages looked at in one hold of the file's lock.
const LOOK_PAGES: u64 = 1024;

/// A search under way.
struct Search {
    /// The next page to check.
    next: u64,
    /// The run found so far, in pages.
    run: Option<Range<u64>>,
}

impl<P: Platform> Writeback<P> {
    /// [`Engine::unwritten`](crate::Engine::unwritten).
    pub(crate) async fn unwritten(&self, file: &Arc<FileInner>, from: u64) -> Option<Range<u64>> {
        let mut search = Search { next: from / PAGE_BYTES, run: None };
        while !search.look(file) {
            self.base.pass().await;
        }
        search.run.map(|run| run.start * PAGE_BYTES..run.end * PAGE_BYTES)
    }
}

impl Search {
    /// Checks some pages; returns whether the search has ended.
    fn look(&mut self, file: &FileInner) -> bool {
        let (_state, cache) = (lock(&file.state), &file.cache);
        for looked in 0..cache.piece(LOOK_PAGES) {
            cache.longest_hold.raise_to(looked + 1);
            let Some(page) = file.pages.index.next_present(&cache.nodes, self.next) else { return true };
            if self.run.as_ref().is_some_and(|run| run.end != page) {
                return true;
            }
            let frame = cache.frame_at(&file.pages, page);
            let unwritten =
                frame.is_some_and(|frame| cache.pages.word(frame).has_any(DIRTY | WRITEBACK | PRIOR | FAILED));
            match &mut self.run {
                Some(_) if !unwritten => return true,
                Some(run) => run.end = page + 1,
                None if unwritten => self.run = Some(page..page + 1),
                None => {}
            }
            self.next = page + 1;
        }
        false
    }
}
