//! Misses of a blocked caller: its thread reads from the host where it stands, and no other thread has to be woken.
//!
//! Owns: which misses go this way.
//! Does not own: the steps of a read (`fill`), the loop from miss to hit (`reading`); the wait for everything else,
//! which is the caller's.
//! Invariants: a read on this thread has the same beginning and the same end as a request, so other readers of its
//! pages wait for it and are woken (test `others_wait_for_a_read_in_the_call`). A read that needs a request, or brings
//! more pages than its caller waits for, becomes one (`a_read_in_the_call_falls_back_to_a_request`).

use std::future::Future;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;

use afflux_device::FILE_BYTES_MAX;
use afflux_device::error::{Error, check_range};
use afflux_device::platform::Platform;
use afflux_device::request::TransferHere;
use afflux_pages::units::PAGE_BYTES;

use super::fill::{BegunRead, ReadResources};
use super::{Progress, Reading};
use crate::call::FileCall;
use crate::devices::delays::Delay;
use crate::devices::file::FileInner;

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

    /// Brings the first page in, or completes it. The caller looks again afterwards.
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
