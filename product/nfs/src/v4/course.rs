//! The course of a compound: its operations one after the other, until the end or the first failure.
//!
//! Owns: SEQUENCE's position before all others, the order of operations, the move to a worker in the middle; which
//! operations are recorded, as calls that move bytes or ask for a sync.
//! Does not own: the operations (`operations`), their common state (`compound`), the start of a compound
//! (`connection`), the recording (`frontend`); COPY's ranges, which only its end knows (`operations::copies`).
//! Invariants: a SEQUENCE runs once, outside of all waiting. An operation that would wait has changed nothing, but for
//! the beginning of a WRITE, and is the one that a worker starts with; no earlier operation runs again. It is recorded
//! once. A compound may be dropped until it begins an operation that a repetition would not do again.
//!
//! The life of a compound: `connection` reads its head and tries it at once. At the first operation that would wait the
//! draft moves to a worker's buffer, and the worker goes on from there. The end caches the reply in its slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afflux_frontend::RecordedCall;
use afflux_frontend::trace::TracedOperation;
use afflux_volume::{Caller, Inode, Platform, Volume, handle_hash};
use bytes::Bytes;
use futures_util::future::FutureExt;

use crate::operations::{AtOnce, OnBehalf, Operations, Stability, Stop, Task};
use crate::status::NfsStatus;
use crate::v4::codec::{self, ArgOp};
use crate::v4::compound::{Compound, Object};
use crate::v4::operations::{self, sessions};
use crate::v4::opnum;
use crate::wire::reply::{Draft, Reply};
use crate::wire::xdr::Writer;

/// Most bytes of the results of an operation that changes something.
const CHANGE_BYTES_MAX: usize = 256;

/// A compound that waits on a worker.
pub(crate) struct WaitingCompound<P: Platform> {
    pub(crate) by: OnBehalf,
    pub(crate) record: Bytes,
    pub(crate) compound: Compound<P>,
    pub(crate) draft: Draft,
}

impl<P: Platform> Compound<P> {
    /// Answers a compound if that takes no waiting. Otherwise the draft has the results of the operations before the
    /// one that would wait.
    pub(crate) fn try_answer(&mut self, volume: &Volume<P>, caller: &Caller, record: &[u8], draft: &mut Draft) -> bool {
        if !self.try_begin(volume, record, draft) {
            return true;
        }
        let on = AtOnce { volume, caller, record };
        match run(&on, self, draft, None).now_or_never() {
            Some(Ok(())) => {
                self.end(draft);
                true
            }
            Some(Err(WouldWait)) | None => false,
        }
    }

    /// Takes what must come first: SEQUENCE, or the single operation that needs no session. False if that was all.
    fn try_begin(&mut self, volume: &Volume<P>, record: &[u8], draft: &mut Draft) -> bool {
        if !(1..=2).contains(&self.minor) {
            self.status = NfsStatus::MinorVersMismatch;
            self.end(draft);
            return false;
        }
        if self.count == 0 {
            self.end(draft);
            return false;
        }
        let start = draft.mark();
        let (number, begun) = match codec::sequence(record, self.at) {
            Some((arguments, next)) => {
                self.at = next;
                begin_result(&mut draft.writer, opnum::SEQUENCE);
                (opnum::SEQUENCE, sessions::sequence(self, record, draft, &arguments))
            }
            None => match self.begin_without_session(volume, record, draft) {
                Some((number, begun)) => (number, begun.map(|()| sessions::Sequenced::New)),
                None => {
                    self.status = NfsStatus::Badxdr;
                    self.end(draft);
                    return false;
                }
            },
        };
        match begun {
            Ok(sessions::Sequenced::Again(reply)) => {
                let status = reply.first_chunk().copied().map(u32::from_be_bytes).and_then(NfsStatus::from_code);
                draft.replace_results(&reply, status.unwrap_or(NfsStatus::Serverfault));
                self.service.counts.count(number);
                return false;
            }
            Ok(sessions::Sequenced::New) => self.ended_one(number),
            Err(status) => self.failed(draft, number, start, status),
        }
        if self.taken.is_none() {
            self.end(draft);
        }
        self.taken.is_some()
    }

    /// Carries out a first operation that is no SEQUENCE: its number and its end. None if it has no number.
    #[cold]
    fn begin_without_session(
        &mut self,
        volume: &Volume<P>,
        record: &[u8],
        draft: &mut Draft,
    ) -> Option<(u32, Result<(), NfsStatus>)> {
        let mut operation = ArgOp::Unsupported;
        let (number, read) = codec::read_operation(record, self.at, self.minor, &mut operation).ok()?;
        begin_result(&mut draft.writer, number);
        let Ok(next) = read else { return Some((number, Err(NfsStatus::Badxdr))) };
        self.at = next;
        let ended = match operation {
            operation if sessions::may_stand_alone(number) => match self.count {
                1 => sessions::alone(self, volume, record, draft, &operation),
                _ => Err(NfsStatus::NotOnlyOp),
            },
            ArgOp::Illegal => Err(NfsStatus::OpIllegal),
            _ => Err(NfsStatus::OpNotInSession),
        };
        Some((number, ended))
    }
}

/// An operation would wait: a worker goes on with it.
pub(super) struct WouldWait;

/// Begins a result with success; a failure is written over it.
#[inline]
fn begin_result(writer: &mut Writer, number: u32) {
    writer.words([number, NfsStatus::Ok.code()]);
}

/// Carries out the rest of the operations. `lasts` is set before the first one that may not be dropped.
async fn run<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    lasts: Option<&AtomicBool>,
) -> Result<(), WouldWait> {
    let mut operation = ArgOp::Unsupported;
    let (bytes_max, too_long) = compound.reply_bound();
    // A worker begins with the operation that would wait.
    let mut was_tried = on.task().is_ok();
    while compound.done < compound.count && compound.status == NfsStatus::Ok {
        let start = draft.mark();
        let read = codec::read_operation(on.record(), compound.at, compound.minor, &mut operation);
        let Ok((number, read)) = read else {
            compound.status = NfsStatus::Badxdr;
            break;
        };
        let Ok(next) = read else {
            compound.failed(draft, number, start, NfsStatus::Badxdr);
            break;
        };
        begin_result(&mut draft.writer, number);
        let done = if operations::is_change(&operation) && bytes_max.saturating_sub(draft.bytes()) < CHANGE_BYTES_MAX {
            Err(Stop::Failed(too_long))
        } else {
            if !compound.has_changed && operations::is_lasting(&operation) {
                compound.has_changed = true;
                lasts.inspect(|lasts| lasts.store(true, Ordering::Release));
            }
            if compound.is_found_later() && operations::is_noted(&operation) {
                compound.begin_change(on.volume());
            }
            compound.record(&operation);
            match compound.refused_before() {
                Some(status) => Err(Stop::Failed(status)),
                None => {
                    let at_once =
                        if was_tried { None } else { operations::try_at_once(on, compound, draft, &operation) };
                    match at_once {
                        Some(ended) => ended.map_err(Stop::Failed),
                        None => operations::carry_out(on, compound, draft, &operation).await,
                    }
                }
            }
        };
        was_tried = false;
        // Only what changes nothing may fail for its length afterwards.
        let done = match done {
            Ok(()) if draft.bytes() > bytes_max => Err(Stop::Failed(too_long)),
            done => done,
        };
        match done {
            Ok(()) => {
                compound.at = next;
                compound.ended_one(number);
            }
            Err(Stop::WouldWait) => {
                draft.back_to(start);
                return Err(WouldWait);
            }
            Err(Stop::Failed(status)) => {
                compound.failed(draft, number, start, status);
            }
        }
    }
    Ok(())
}

/// Carries out a compound from the operation on that would have waited. `lasts` says whether it may be dropped.
pub(crate) async fn carry_out<P: Platform>(
    volume: &Volume<P>,
    waiting: WaitingCompound<P>,
    lasts: &AtomicBool,
) -> Reply {
    let WaitingCompound { by, record, mut compound, mut draft } = waiting;
    let on = Task { volume, caller: &by.caller, client: &by.client, record: &record };
    if run(&on, &mut compound, &mut draft, Some(lasts)).await.is_err() {
        unreachable!("a compound that may wait has stopped instead");
    }
    compound.end(&mut draft);
    draft.finish()
}

impl<P: Platform> Compound<P> {
    /// Records the operation that starts here, while somebody reads the recording.
    #[inline]
    pub(super) fn record(&mut self, operation: &ArgOp) {
        if self.service.recording.is_on() {
            self.record_now(operation);
        }
    }

    #[cold]
    fn record_now(&mut self, operation: &ArgOp) {
        let (traced, offset, bytes) = match *operation {
            ArgOp::Read { offset, count, .. } => (TracedOperation::Read, offset, count.into()),
            ArgOp::Write { offset, data, .. } => (TracedOperation::Write, offset, data.range().len() as u64),
            ArgOp::Commit { offset, .. } => (TracedOperation::Sync, offset, 0),
            _ => return,
        };
        let is_durable =
            matches!(*operation, ArgOp::Write { stability, .. } if stability != Stability::Unstable as u32);
        if self.recorded_at == self.at {
            return;
        }
        self.recorded_at = self.at;
        if let Ok(Object::Inode(inode)) = self.object() {
            self.record_of(inode, traced, offset, bytes, is_durable);
        }
    }

    /// Records an access to a file, and the sync of a write that is to be durable.
    pub(super) fn record_of(
        &self,
        inode: &Arc<Inode<P>>,
        operation: TracedOperation,
        offset: u64,
        bytes: u64,
        is_durable: bool,
    ) {
        let recording = &self.service.recording;
        if recording.is_on()
            && let Some(file) = handle_hash(inode.handle_bytes())
        {
            let call = RecordedCall { operation, file, offset, bytes };
            recording.note_call(call, is_durable, || self.service.volume.engine().platform().now().0);
        }
    }
}
