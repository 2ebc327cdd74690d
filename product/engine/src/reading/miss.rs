//! A miss: what prevents the copy of a page to a reader, and what overcomes that, by a request or on the thread of a
//! blocked caller.
//!
//! Owns: the check of the page under its file's lock, the choice between a request and a wait; which misses a caller's
//! thread reads from the host where it stands, so that no other thread has to be woken.
//! Does not own: the steps of a read (`fill`), the loop from miss to hit (`reading`); a blocked caller's wait for
//! everything else.
//! Invariants: an absent page whose resources are free is begun in the same hold of the lock. Nobody waits for a page
//! with the lock held. A read on a caller's thread has the same beginning and the same end as a request, so other
//! readers of its pages wait for it and are woken (test `others_wait_for_a_read_in_the_call`). A read that needs a
//! request, or brings more pages than its caller waits for, becomes one (`a_read_in_the_call_falls_back_to_a_request`).

use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;

use afflux_device::FILE_BYTES_MAX;
use afflux_device::error::{Error, check_range};
use afflux_device::platform::Platform;
use afflux_device::request::TransferHere;
use afflux_frames::FrameId;
use afflux_pages::page::{PRESENT, READING, UPTODATE, WRITEBACK};
use afflux_pages::units::PAGE_BYTES;
use afflux_pages::wait::lock;

use crate::call::FileCall;
use crate::devices::delays::Delay;
use crate::devices::file::{FileInner, FileState};
use crate::reading::fill::{BegunRead, Miss, ReadResources};
use crate::reading::{Obstacle, Progress, Reading};

impl<P: Platform> Reading<P> {
    /// Brings the first page in, or completes it, and waits for that. The caller checks again afterwards.
    pub(crate) async fn fetch(self: &Arc<Self>, call: &FileCall<'_>, pages: Range<u64>) -> Result<(), Error> {
        let mut hand = ReadResources::empty(&self.base.cache, &call.file.device);
        match self.look(call.file, &pages, &mut hand)? {
            Ok(miss) => self.fill(call, miss, hand).await,
            Err(obstacle) => self.overcome(call, pages.start, obstacle).await,
        }
    }

    /// Finds why the first page cannot be copied. If it is absent, begins its request with the resources that are free.
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
            // Mostly all resources of a miss are free: then one check of the file is enough.
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

/// The part of a blocked caller's read that needs the engine's tasks.
pub type Waiting<'a> = dyn Future<Output = Result<(), Error>> + 'a;

impl<P: Platform> Reading<P> {
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

    /// Brings the first page in, or completes it. The caller checks again afterwards.
    fn fetch_here<E>(
        self: &Arc<Self>,
        call: &FileCall<'_>,
        pages: Range<u64>,
        wait: &mut impl FnMut(Pin<&mut Waiting<'_>>) -> Result<Result<(), Error>, E>,
    ) -> Result<Result<(), Error>, E> {
        let mut hand = ReadResources::empty(&self.base.cache, &call.file.device);
        let mut miss = match self.look(call.file, &pages, &mut hand) {
            Ok(Ok(miss)) => miss,
            Ok(Err(obstacle)) => {
                let overcome = || self.overcome(call, pages.start, obstacle);
                return wait(pin!(call.waits(&self.base, Delay::Read, overcome)));
            }
            Err(error) => return Ok(Err(error)),
        };
        if miss.ahead.count == 0
            && let Some(begun) = miss.begun.take()
        {
            match self.fill_here(call, begun) {
                Ok(result) => return Ok(result),
                Err(begun) => miss.begun = Some(begun),
            }
        }
        wait(pin!(call.waits(&self.base, Delay::Read, || self.fill(call, miss, hand))))
    }

    /// Carries a read out on this thread. Gives it back if it needs a request.
    fn fill_here(&self, call: &FileCall<'_>, begun: BegunRead<P>) -> Result<Result<(), Error>, BegunRead<P>> {
        let (file, operation, request, at) = (call.file, begun.operation(), begun.pages(), begun.at());
        // Not where the frames were taken: it may start a task, and the file's lock was held there.
        self.reclaim.look_ahead();
        let BegunRead { first, pieces, ends } = begun;
        let memory = self.memory(pieces);
        let read = TransferHere::new(&file.backing, first * PAGE_BYTES, &memory);
        let Some(result) = file.device.read_here(&read) else {
            return Err(BegunRead { first, pieces: memory.into_pieces(), ends });
        };
        self.note_sent(file, operation, at);
        let now = ends.end(operation, memory.pieces(), result);
        call.waited(Delay::Read, now.since(at));
        self.reclaim.make_up_for(request.end - request.start);
        Ok(self.filled(file, request, result))
    }
}
