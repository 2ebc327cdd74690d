//! The return of found pages to their files: a file of an earlier process is opened with the dirty pages, the size and
//! the unfinished change of shape that it had.
//!
//! Owns: the order of steps, the cut of pages to the size that clients know, the bytes of sectors that nobody knows.
//! Does not own: the scan of the memory (`recovery`), the writing (`writeback`), the change of shape (`reshape`).
//! Invariants: found pages are charged, listed and written as any others. A page retains its frame and its record, so a
//! kill during the adoption loses nothing. A separate task adopts, so that nothing stays half done if the caller goes
//! away. No reader sees the file before it is whole.

use std::sync::Arc;

use afflux_device::counters::Counter;
use afflux_device::platform::Platform;
use afflux_device::request::Backing;
use afflux_frames::FRAME_BYTES;
use afflux_pages::eviction::Admitted;
use afflux_pages::page::{SECTOR_BYTES, Sectors};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::{Answer, lock};

use crate::base::Base;
use crate::devices::DeviceState;
use crate::devices::file::{FileInner, FileState};
use crate::dirty::force_charge;
use crate::reclaim::{Reclaim, SpareFrames};
use crate::recovery::slots::{Intent, PersistedFile};
use crate::recovery::{FileKey, FoundFile, FoundPage};
use crate::reshape::Reshaping;

/// Pages that come into the index in one hold of the file's lock.
const PIECE_PAGES: usize = 256;
/// Frames to take for nodes of the index when there are none.
const NODE_FRAMES: usize = 2;

pub(crate) struct Adopting<P: Platform> {
    base: Base<P>,
    reclaim: Arc<Reclaim<P>>,
    reshaping: Arc<Reshaping<P>>,
}

impl<P: Platform> Adopting<P> {
    pub(crate) fn new(base: Base<P>, reclaim: Arc<Reclaim<P>>, reshaping: Arc<Reshaping<P>>) -> Arc<Self> {
        Arc::new(Self { base, reclaim, reshaping })
    }

    /// [`Engine::adopt`](crate::Engine::adopt).
    pub(crate) async fn adopt(
        self: &Arc<Self>,
        device: Arc<DeviceState>,
        backing: Backing,
        key: &FileKey,
        host_bytes: u64,
    ) -> Option<Arc<FileInner>> {
        let found = self.base.devices.unadopted.take(key)?;
        let (adopting, answer) = (Arc::clone(self), Answer::new());
        let told = Arc::clone(&answer);
        self.base.platform.spawn("adopt", async move {
            told.give(adopting.adopt_file(device, backing, found, host_bytes).await);
        });
        Some(answer.wait().await)
    }

    async fn adopt_file(
        &self,
        device: Arc<DeviceState>,
        backing: Backing,
        found: FoundFile,
        host_bytes: u64,
    ) -> Arc<FileInner> {
        let file = self.base.devices.open_found(device, backing, &found, host_bytes);
        {
            let mut state = lock(&file.state);
            // What was written before may be in no flush, and is not here any more.
            state.flushes.note_evicted(true);
            file.owe_flush(&mut state, self.base.now());
        }
        let cut = Cut { size: found.size, is_end: host_bytes <= found.size };
        let mut left = &found.pages[..];
        let mut spare = SpareFrames::none(&self.base.cache);
        while !left.is_empty() {
            let done = self.adopt_some(&file, &cut, &left[..left.len().min(PIECE_PAGES)], &mut spare);
            left = &left[done..];
            match done {
                0 => spare.join(self.reclaim.take_frames(NODE_FRAMES).await),
                _ => self.base.pass().await,
            }
        }
        drop(spare);
        self.reshape(&file, found.intent).await;
        file
    }

    /// Adopts pages in one hold of the file's lock; returns how many. Stops where a node of the index needs a frame.
    fn adopt_some(&self, file: &Arc<FileInner>, cut: &Cut, pages: &[FoundPage], spare: &mut SpareFrames<'_>) -> usize {
        let (cache, index) = (&self.base.cache, &file.pages.index);
        let mut state = lock(&file.state);
        for (done, found) in pages.iter().enumerate() {
            let Some(Whole { dirty, valid }) = self.make_whole(file, cut, found) else {
                cache.pages.detach(found.frame);
                cache.release(found.frame);
                continue;
            };
            let Some(reserved) = index.reserve_nodes(&cache.nodes, found.page, || spare.take_for_index()) else {
                return done;
            };
            cache.pages.settle_found(found.frame, dirty, valid);
            index.insert(&cache.nodes, found.page, found.frame, reserved);
            self.note_dirty(file, &mut state, found);
        }
        pages.len()
    }

    /// A page is dirty again: in the accounts, in the lists.
    fn note_dirty(&self, file: &Arc<FileInner>, state: &mut FileState, page: &FoundPage) {
        file.tag_dirty(state, page.page, true);
        self.base.cache.admit(&file.pages, page.page, page.frame, Admitted::Written);
        force_charge(&file.device, 1);
        self.base.local().count(Counter::PagesDirtied, 1);
        file.note_dirtied(state, || self.base.now());
    }

    /// The sectors of the page as they belong in the file: nothing past the end, and whole blocks. `None` if nothing of
    /// the page remains.
    fn make_whole(&self, file: &FileInner, cut: &Cut, page: &FoundPage) -> Option<Whole> {
        let cache = &self.base.cache;
        let in_file = cut.size.saturating_sub(page.page * PAGE_BYTES).min(PAGE_BYTES) as usize;
        let there = Sectors::touched(0..in_file);
        // A write that was not answered may have been copied past the end.
        cache.zero(page.frame, in_file..FRAME_BYTES);
        let dirty = page.dirty.intersection(there);
        if dirty.is_empty() {
            return None;
        }
        let mut valid = if cut.is_end { dirty.union(Sectors::ALL.without(there)) } else { dirty };
        if file.device.limits().block_bytes as usize > SECTOR_BYTES {
            // The page was dirtied as a whole. Sectors that are not dirty lay past the end when the page was written
            // last, and were not written since: they are zeros.
            for sector in Sectors::ALL.without(valid).iter() {
                cache.zero(page.frame, sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES);
            }
            valid = Sectors::ALL;
        }
        Some(Whole { dirty, valid })
    }

    /// Carries out a change of shape that the earlier process had begun. If the device refuses the change now, it has
    /// not happened, and the earlier process has reported no success.
    async fn reshape(&self, file: &Arc<FileInner>, intent: Option<Intent>) {
        let result = match intent {
            None => return,
            Some(Intent::Size(size)) => self.reshaping.set_size(file, size).await,
            Some(Intent::Hole(range)) => self.reshaping.punch(file, range).await,
        };
        // Also where there was nothing to do.
        if result.is_ok() || !file.is_reshaping() {
            let _state = lock(&file.state);
            file.persisted.iter().for_each(PersistedFile::end);
        }
    }

    /// [`Engine::try_forget_found`](crate::Engine::try_forget_found).
    pub(crate) fn try_forget(&self, key: &FileKey) -> bool {
        let Some(found) = self.base.devices.unadopted.take(key) else { return false };
        let cache = &self.base.cache;
        for page in &found.pages {
            cache.pages.detach(page.frame);
            cache.release(page.frame);
        }
        self.base.devices.forget_found(found.slot);
        true
    }
}

/// The sectors of a found page that its file takes.
struct Whole {
    dirty: Sectors,
    valid: Sectors,
}

/// Where a found file ended.
struct Cut {
    /// The size as clients knew it.
    size: u64,
    /// Whether the host's file ends there, so that the bytes behind are zeros.
    is_end: bool,
}
