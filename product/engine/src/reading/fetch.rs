//! Brings one page in for a reader: what keeps the page from being copied, and what overcomes that.
//!
//! Owns: the look at the page under its file's lock, the choice between a request and a wait.
//! Does not own: the request (`fill`), the loop of the reader (`reading`).
//! Invariants: an absent page whose resources are free is begun in the same hold of the lock. Nobody waits for a page
//! with the lock held.

use std::ops::Range;
use std::sync::Arc;

use afflux_device::error::Error;
use afflux_device::platform::Platform;
use afflux_frames::FrameId;
use afflux_pages::page::{PRESENT, READING, UPTODATE, WRITEBACK};
use afflux_pages::wait::lock;

use super::fill::{Miss, ReadResources};
use super::{Obstacle, Reading};
use crate::call::FileCall;
use crate::devices::file::{FileInner, FileState};

impl<P: Platform> Reading<P> {
    /// Brings the first page in, or completes it, and waits for that. The caller looks again afterwards.
    pub(crate) async fn fetch(self: &Arc<Self>, call: &FileCall<'_>, pages: Range<u64>) -> Result<(), Error> {
        let mut hand = ReadResources::empty(&self.base.cache, &call.file.device);
        match self.look(call.file, &pages, &mut hand)? {
            Ok(miss) => self.fill(call, miss, hand).await,
            Err(obstacle) => self.overcome(call, pages.start, obstacle).await,
        }
    }

    /// Looks why the first page cannot be copied. If it is absent, begins its request with the resources that are free.
    pub(super) fn look<'a>(
        self: &Arc<Self>,
        file: &'a Arc<FileInner>,
        pages: &Range<u64>,
        hand: &mut ReadResources<'a>,
    ) -> Result<Result<Miss<P>, Obstacle>, Error> {
        let mut state = lock(&file.state);
        if state.is_discarded() {
            return Err(Error::Discarded);
        }
        Ok(match self.obstacle(&state, file, pages.start) {
            // Mostly all resources of a miss are free: then one look at the file is enough.
            Obstacle::Absent => Ok(self.miss(file, &mut state, pages, hand)),
            obstacle => Err(obstacle),
        })
    }

    pub(super) async fn overcome(
        self: &Arc<Self>,
        call: &FileCall<'_>,
        page: u64,
        obstacle: Obstacle,
    ) -> Result<(), Error> {
        let file = call.file;
        match obstacle {
            Obstacle::None | Obstacle::Absent => {}
            Obstacle::Held => file.queue.until(|| (!lock(&file.state).is_held()).then_some(())).await,
            Obstacle::InFlight(frame) => self.wait_for_page(file, page, frame).await,
            Obstacle::Partial(_) => self.merge(call, page).await?,
        }
        Ok(())
    }

    pub(super) fn obstacle(&self, state: &FileState, file: &FileInner, page: u64) -> Obstacle {
        let Some(frame) = self.base.cache.frame_at(&file.pages, page) else {
            return if state.is_held() { Obstacle::Held } else { Obstacle::Absent };
        };
        let word = self.base.cache.pages.word(frame);
        if word.has(UPTODATE) {
            Obstacle::None
        } else if word.has_any(READING | WRITEBACK) {
            Obstacle::InFlight(frame)
        } else if state.is_held() {
            Obstacle::Held
        } else {
            Obstacle::Partial(frame)
        }
    }

    /// Waits until the frame is no longer this page with a request in flight.
    pub(crate) async fn wait_for_page(&self, file: &FileInner, page: u64, frame: FrameId) {
        let cache = &self.base.cache;
        let identity = file.pages.identity(page);
        cache
            .page_queue(frame)
            .until(|| {
                let word = cache.pages.word(frame);
                let same = word.has(PRESENT) && cache.pages.identity(frame) == identity;
                (!(same && word.has_any(READING | WRITEBACK))).then_some(())
            })
            .await;
    }
}
