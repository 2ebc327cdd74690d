//! Reading: hits at once, misses by bringing pages in.
//!
//! Owns: the loop from miss to hit.
//! Does not own: the copy (`cache::hit`), one page of a miss (`miss`), reads in flight (`in_flight`), readahead
//! (`ahead`), frames (`reclaim`).
//! Invariants: a page being read is in the index, so that one request serves all its readers. When a read fails, the
//! reader that asked for it gets the error; others ask anew. Nobody waits for a read that was not submitted.

pub(crate) mod ahead;
mod in_flight;
mod miss;

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_device::FILE_BYTES_MAX;
use afflux_device::client::Client;
use afflux_device::counters::{Counter, Local};
use afflux_device::error::{Error, check_range};
use afflux_device::platform::Platform;
use afflux_frames::FRAME_BYTES;
use afflux_pages::cache::hit::InPage;
use afflux_pages::cache::{GuardSlots, PinnedPages};
use afflux_pages::memory::SharedArena;
use afflux_pages::page::{PRESENT, READING, UPTODATE, Word};
use afflux_pages::units::PAGE_BYTES;

use crate::base::Base;
use crate::call::FileCall;
use crate::devices::delays::Delay;
use crate::devices::file::FileInner;
use crate::reclaim::Reclaim;

/// The part of a blocked caller's read that needs the engine's tasks.
pub type Waiting<'a> = dyn Future<Output = Result<(), Error>> + 'a;

/// The mechanism. A request in flight holds a reference to it and to its arena. An engine has several copies, so that
/// their references are counted separately.
#[repr(align(128))]
pub(crate) struct Reading<P: Platform> {
    base: Base<P>,
    reclaim: Arc<Reclaim<P>>,
    arena: Arc<SharedArena>,
    guards: Arc<GuardSlots>,
}

/// The number of copies in an engine; all are alike.
const COPIES: u32 = 16;

/// Copies of the mechanism, so that readers of different files seldom count references in the same word.
pub(crate) struct Readings<P: Platform> {
    copies: Box<[Arc<Reading<P>>]>,
    guards: Arc<GuardSlots>,
}

impl<P: Platform> Readings<P> {
    pub(crate) fn new(base: &Base<P>, reclaim: &Arc<Reclaim<P>>) -> Arc<Self> {
        let guards = GuardSlots::new(&base.cache);
        let copy = |_| Reading::new(base.clone(), Arc::clone(reclaim), Arc::clone(&guards));
        Arc::new(Self { copies: (0..COPIES).map(copy).collect(), guards })
    }

    /// The copy for a file.
    #[inline]
    pub(crate) fn of(&self, file: &FileInner) -> &Arc<Reading<P>> {
        &self.copies[(file.pages.slot % COPIES) as usize]
    }

    /// Bytes of pages under guards; a guard of no bytes counts as one page.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.guards.pages() * PAGE_BYTES
    }

    /// [`Engine::try_read_pinned`](crate::Engine::try_read_pinned).
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "what a call returns through memory is read back before it is there")]
    pub(crate) fn try_read_pinned(
        &self,
        local: &Local,
        file: &Arc<FileInner>,
        offset: u64,
        len: usize,
    ) -> Option<PinnedPages> {
        let want = available(file, offset, len);
        let pages = PinnedPages::take(&self.guards, &local.hazards, &file.pages, offset, want)?;
        local.count(Counter::ReadHitPages, pages.count());
        if needs_more_ahead(file, offset + want as u64) {
            self.of(file).read_ahead(file, offset..offset + want as u64);
        }
        Some(pages)
    }
}

/// The pages of a call as found at its start. They are counted when the call has succeeded.
struct Found {
    hits: u64,
    misses: u64,
    /// The missed pages that were being read already.
    joined: u64,
}

/// How far a read has come.
#[derive(Default)]
struct Progress {
    /// Bytes that were copied.
    done: usize,
    /// The pages, once one was missing.
    found: Option<Found>,
}

/// Copies up to the first absent page; returns the number of bytes. Counts the pages as found if all were copied.
#[inline]
pub(crate) fn copy_hits<P: Platform>(base: &Base<P>, file: &FileInner, offset: u64, into: &mut [u8]) -> usize {
    let at = InPage::first(offset, into.len());
    if at.len < into.len() || into.is_empty() {
        let (done, pages) = copy_pages(base, file, offset, into);
        base.local().count(Counter::ReadHitPages, if done == into.len() { pages } else { 0 });
        return done;
    }
    let hit = base.cache.try_read_hit(&file.pages, at, into);
    base.local().count(Counter::ReadHitPages, u64::from(hit));
    if hit { at.len } else { 0 }
}

/// [`copy_hits`] for any number of pages, one by one and uncounted; returns the number of bytes and pages.
fn copy_pages<P: Platform>(base: &Base<P>, file: &FileInner, offset: u64, into: &mut [u8]) -> (usize, u64) {
    let (mut done, mut pages) = (0, 0);
    while done < into.len() {
        let at = InPage::first(offset + done as u64, into.len() - done);
        if !base.cache.try_read_hit(&file.pages, at, &mut into[done..]) {
            break;
        }
        done += at.len;
        pages += 1;
    }
    (done, pages)
}

/// How many of `len` bytes from `offset` on are in the file.
#[inline]
pub(crate) fn available(file: &FileInner, offset: u64, len: usize) -> usize {
    file.size().saturating_sub(offset).min(len as u64) as usize
}

/// The number of pages that such a range touches.
#[inline]
fn page_count(offset: u64, len: usize) -> u64 {
    if len == 0 { 0 } else { (offset % PAGE_BYTES + len as u64).div_ceil(PAGE_BYTES) }
}

/// Whether a read up to `end` has used up the pages read ahead.
#[inline]
pub(crate) fn needs_more_ahead(file: &FileInner, end: u64) -> bool {
    end > file.pages.readahead_trigger.load(Ordering::Relaxed)
}

impl<P: Platform> Reading<P> {
    fn new(base: Base<P>, reclaim: Arc<Reclaim<P>>, guards: Arc<GuardSlots>) -> Arc<Self> {
        let arena = Arc::new(SharedArena(Arc::clone(&base.cache.frames)));
        Arc::new(Self { base, reclaim, arena, guards })
    }

    /// [`Engine::read`](crate::Engine::read).
    pub(crate) async fn read(
        self: &Arc<Self>,
        client: Option<&Client>,
        file: &Arc<FileInner>,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        check_range(offset, into.len(), FILE_BYTES_MAX)?;
        let (call, mut progress) = (FileCall::new(file, client), Progress::default());
        while let Some(pages) = self.copy_on(file, offset, into, &mut progress) {
            call.waits(&self.base, Delay::Read, || self.fetch(&call, pages)).await?;
        }
        Ok(progress.done)
    }

    /// [`Engine::read_here`](crate::Engine::read_here).
    pub(crate) fn read_here<E>(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        offset: u64,
        into: &mut [u8],
        mut wait: impl FnMut(Pin<&mut Waiting<'_>>) -> Result<Result<(), Error>, E>,
    ) -> Result<Result<usize, Error>, E> {
        if let Err(error) = check_range(offset, into.len(), FILE_BYTES_MAX) {
            return Ok(Err(error));
        }
        let (call, mut progress) = (FileCall::new(file, None), Progress::default());
        while let Some(pages) = self.copy_on(file, offset, into, &mut progress) {
            if let Err(error) = self.fetch_here(&call, pages, &mut wait)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(progress.done))
    }

    /// Copies as far as pages are there. Returns the pages that are still wanted; the first of them is absent. `None`
    /// once all bytes are copied and counted.
    fn copy_on(
        self: &Arc<Self>,
        file: &Arc<FileInner>,
        offset: u64,
        into: &mut [u8],
        progress: &mut Progress,
    ) -> Option<Range<u64>> {
        loop {
            let want = available(file, offset, into.len());
            if progress.done >= want {
                progress.done = want;
                self.end_read(file, offset, want, progress.found.take());
                return None;
            }
            let (at, left) = (offset + progress.done as u64, &mut into[progress.done..want]);
            progress.done += if progress.found.is_none() {
                copy_hits(&self.base, file, at, left)
            } else {
                copy_pages(&self.base, file, at, left).0
            };
            if progress.done < want {
                let first = (offset + progress.done as u64) / PAGE_BYTES;
                let end = (offset + want as u64).div_ceil(PAGE_BYTES);
                progress.found.get_or_insert_with(|| self.look_for(file, first - offset / PAGE_BYTES, first..end));
                return Some(first..end);
            }
        }
    }

    /// [`Engine::read_pinned`](crate::Engine::read_pinned).
    pub(crate) async fn read_pinned(
        self: &Arc<Self>,
        client: Option<&Client>,
        file: &Arc<FileInner>,
        offset: u64,
        len: usize,
    ) -> Result<Option<PinnedPages>, Error> {
        check_range(offset, len, FILE_BYTES_MAX)?;
        let call = FileCall::new(file, client);
        let tries = 16 + 2 * len / FRAME_BYTES;
        let mut found = None;
        for _ in 0..tries {
            let want = available(file, offset, len);
            let pages = FileInner::pages_of(&(offset..offset + want as u64));
            let is_there = |page: &u64| self.word(file, *page).is_some_and(|word| word.has(PRESENT | UPTODATE));
            // The caller has tried to take guards. A look at the pages costs less than another such try.
            if let Some(page) = pages.clone().find(|page| !is_there(page)) {
                found.get_or_insert_with(|| self.look_for(file, 0, pages.clone()));
                call.waits(&self.base, Delay::Read, || self.fetch(&call, page..pages.end)).await?;
            } else if let Some(pinned) =
                PinnedPages::take(&self.guards, &self.base.local().hazards, &file.pages, offset, want)
            {
                let found = found.unwrap_or(Found { hits: page_count(offset, want), misses: 0, joined: 0 });
                self.end_read(file, offset, want, Some(found));
                return Ok(Some(pinned));
            } else {
                self.base.pass().await;
            }
        }
        Ok(None)
    }

    /// Counts which of these pages are in the cache, without a lock. The `before` pages of the call in front of them
    /// are.
    #[cold]
    fn look_for(&self, file: &FileInner, before: u64, pages: Range<u64>) -> Found {
        let mut found = Found { hits: before, misses: 0, joined: 0 };
        for page in pages {
            let word = self.word(file, page);
            if word.is_some_and(|word| word.has(PRESENT | UPTODATE)) {
                found.hits += 1;
            } else {
                found.misses += 1;
                found.joined += u64::from(word.is_some_and(|word| word.has(PRESENT | READING)));
            }
        }
        found
    }

    /// The state of a page's frame, as far as a thread without a lock can see.
    fn word(&self, file: &FileInner, page: u64) -> Option<Word> {
        let cache = &self.base.cache;
        let frame = file.pages.index.lookup(&cache.nodes, page).filter(|frame| cache.pages.contains(*frame));
        frame.map(|frame| cache.pages.word(frame))
    }

    /// Counts the pages of a successful read, unless it has copied all of them at once and counted them. Reads more
    /// ahead if it is time to.
    fn end_read(self: &Arc<Self>, file: &Arc<FileInner>, offset: u64, len: usize, found: Option<Found>) {
        if let Some(Found { hits, misses, joined }) = found {
            let local = self.base.local();
            local.count(Counter::ReadHitPages, hits);
            local.count(Counter::ReadMissPages, misses);
            local.count(Counter::ReadJoinedPages, joined);
        }
        if needs_more_ahead(file, offset + len as u64) {
            self.read_ahead(file, offset..offset + len as u64);
        }
    }
}
