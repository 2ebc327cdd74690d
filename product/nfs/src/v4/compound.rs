//! A compound: its operations one after the other, in one session, until the end or the first failure.
//!
//! Owns: what operations pass on to the next (the current and the saved object and stateid), SEQUENCE's place, the
//! bounds that a session sets, the half-written reply of a compound that waits.
//! Does not own: the operations (`operations`), reading them (`codec`), when and where a compound runs (`connection`).
//! Invariants: a SEQUENCE runs once, outside of all waiting. An operation that would wait has changed nothing, but for
//! the beginning of a WRITE, and is the one that a worker starts with; no earlier operation runs again. A slot that was
//! taken is given back, whatever becomes of the compound.
//!
//! The life of a compound: `connection` reads its head and tries it at once. At the first operation that would wait the
//! draft moves to a worker's buffer, and the worker goes on from there. The end keeps the reply in its slot.

use std::sync::Arc;

use afflux_volume::{Before, Caller, Inode, Platform, Volume};
use bytes::Bytes;
use futures_util::future::FutureExt;

use super::codec::{self, Head, Operation, number};
use super::operations::{self, sessions};
use super::service::{Service, Shared};
use super::state::clients::Speaker;
use super::state::sessions::Session;
use super::state::stateids::Stateid;
use crate::limits::READ_BYTES_MAX;
use crate::operations::{AtOnce, OnBehalf, Operations, Stop, Task};
use crate::status::Status;
use crate::wire::reply::{Draft, Mark, Reply};
use crate::wire::xdr::Writer;

/// Room that the results of an operation which changes something take at most.
const CHANGE_BYTES_MAX: usize = 256;

/// An object that a handle names.
pub(super) enum Object<P: Platform> {
    /// A directory above the exports.
    Above(u32),
    Inode(Arc<Inode<P>>),
}

impl<P: Platform> Clone for Object<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Above(node) => Self::Above(*node),
            Self::Inode(inode) => Self::Inode(Arc::clone(inode)),
        }
    }
}

/// A slot that the compound has taken.
pub(super) struct TakenSlot {
    pub(super) session: Arc<Session>,
    pub(super) slot: u32,
    /// The reply is kept for a repetition.
    pub(super) keeps: bool,
    has_ended: bool,
}

impl TakenSlot {
    pub(super) fn new(session: Arc<Session>, slot: u32, keeps: bool) -> Self {
        Self { session, slot, keeps, has_ended: false }
    }

    fn end(mut self, draft: &Draft) {
        self.has_ended = true;
        let keep = self.keeps.then_some(|into: &mut Vec<u8>| draft.copy_results(into));
        self.session.slots().end(self.slot, keep);
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        if !self.has_ended {
            self.session.slots().end(self.slot, None::<fn(&mut Vec<u8>)>);
        }
    }
}

/// A compound in progress.
pub(crate) struct Compound<P: Platform> {
    pub(super) service: Shared<P>,
    pub(super) speaker: Speaker,
    pub(super) minor: u32,
    pub(super) now_ns: u64,
    pub(super) taken: Option<TakenSlot>,
    pub(super) current: Option<Object<P>>,
    pub(super) saved: Option<Object<P>>,
    pub(super) stateid: Stateid,
    pub(super) saved_stateid: Stateid,
    /// Bytes that READs and listings may still take.
    pub(super) data_left: u32,
    count: u32,
    done: u32,
    /// Where the next operation starts.
    at: usize,
    /// Where the arguments start, behind the call's number and credentials.
    arguments_at: usize,
    record_bytes: usize,
    status: Status,
    /// Where the number of results is in the reply.
    count_at: Mark,
}

/// A compound that waits on a worker.
pub(crate) struct WaitingCompound<P: Platform> {
    pub(crate) by: OnBehalf,
    pub(crate) record: Bytes,
    pub(crate) compound: Compound<P>,
    pub(crate) draft: Draft,
}

/// A compound that has been read as far as its head.
pub(crate) struct Arrived {
    head: Head,
    /// Bytes of data that its reply will have at most.
    pub(crate) data_bytes_max: u32,
}

/// Reads the head of a compound whose arguments start at `at`, and how much data it asks for. None if it has no head.
pub(crate) fn arrived(record: &[u8], at: usize) -> Option<Arrived> {
    let head = codec::head(record, at).ok()?;
    let (mut wanted, mut at) = (0_u32, head.at);
    // The session may allow fewer.
    for _ in 0..head.count.min(super::state::sessions::OPERATIONS_MAX) {
        let Ok((_, Ok((operation, next)))) = codec::operation(record, at, head.minor) else { break };
        at = next;
        wanted = wanted.saturating_add(match operation {
            Operation::Read { count, .. } => count.min(READ_BYTES_MAX),
            Operation::List(list) => list.bytes_max.min(crate::limits::LISTING_BYTES_MAX),
            _ => 0,
        });
    }
    Some(Arrived { head, data_bytes_max: wanted.min(READ_BYTES_MAX) })
}

impl<P: Platform> Compound<P> {
    /// Begins a compound, and its reply.
    pub(crate) fn new(
        service: &Arc<Service<P>>,
        speaker: Speaker,
        now_ns: u64,
        (record, arrived): (&[u8], Arrived),
        data_left: u32,
        draft: &mut Draft,
    ) -> Self {
        let head = arrived.head;
        let writer = draft.status(Status::Ok);
        writer.opaque(&record[head.tag.range()]);
        let count_at = draft.mark();
        draft.writer.u32(0);
        Self {
            service: Arc::clone(service),
            speaker,
            minor: head.minor,
            now_ns,
            taken: None,
            current: None,
            saved: None,
            stateid: Stateid::ANONYMOUS,
            saved_stateid: Stateid::ANONYMOUS,
            data_left,
            count: head.count,
            done: 0,
            at: head.at,
            arguments_at: head.tag.range().start - 4,
            record_bytes: record.len(),
            status: Status::Ok,
            count_at,
        }
    }

    /// Answers a compound if that takes no waiting. Otherwise the draft has the results of the operations before the one
    /// that would wait.
    pub(crate) fn try_answer(&mut self, volume: &Volume<P>, caller: &Caller, record: &[u8], draft: &mut Draft) -> bool {
        if !self.begin(volume, record, draft) {
            return true;
        }
        let on = AtOnce { volume, caller, record };
        match run(&on, self, draft).now_or_never() {
            Some(Ok(())) => {
                self.end(draft);
                true
            }
            Some(Err(WouldWait)) | None => false,
        }
    }

    /// Takes what must come first: SEQUENCE, or the single operation that needs no session. False if that was all.
    fn begin(&mut self, volume: &Volume<P>, record: &[u8], draft: &mut Draft) -> bool {
        if !(1..=2).contains(&self.minor) {
            self.status = Status::MinorVersionMismatch;
            self.end(draft);
            return false;
        }
        if self.count == 0 {
            self.end(draft);
            return false;
        }
        let read = codec::operation(record, self.at, self.minor);
        let Ok((number, read)) = read else {
            self.status = Status::BadXdr;
            self.end(draft);
            return false;
        };
        let operation = match read {
            Ok((operation, next)) => {
                self.at = next;
                Ok(operation)
            }
            Err(_) => Err(Status::BadXdr),
        };
        let start = draft.mark();
        begin_result(&mut draft.writer, number);
        let begun = match operation {
            Ok(Operation::Sequence(arguments)) => sessions::sequence(self, record, draft, &arguments),
            Ok(operation) if sessions::stands_alone(number) => match self.count {
                1 => sessions::alone(self, volume, record, draft, &operation).map(|()| sessions::Sequenced::New),
                _ => Err(Status::NotOnlyOperation),
            },
            Ok(Operation::Illegal) => Err(Status::OperationIllegal),
            Err(status) => Err(status),
            Ok(_) => Err(Status::OperationNotInSession),
        };
        match begun {
            Ok(sessions::Sequenced::Again(reply)) => {
                let status = reply.first_chunk().copied().map(u32::from_be_bytes).and_then(Status::from_code);
                draft.replace_results(&reply, status.unwrap_or(Status::ServerFault));
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

    fn ended_one(&mut self, number: u32) {
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes the result of an operation that failed, which starts at `start`.
    fn failed(&mut self, draft: &mut Draft, number: u32, start: Mark, status: Status) {
        draft.back_to(start);
        let shown = if matches!(status, Status::OperationIllegal) { number::ILLEGAL } else { number };
        draft.writer.u32(shown);
        draft.writer.u32(status.code());
        const SETATTR: u32 = 34;
        if number == SETATTR {
            // No attribute was set.
            draft.writer.u32(0);
        }
        self.status = status;
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes what is only known at the end, and gives the slot back.
    fn end(&mut self, draft: &mut Draft) {
        draft.patch(self.count_at, self.done);
        draft.restate(self.status);
        if let Some(taken) = self.taken.take() {
            taken.end(draft);
        }
    }

    /// The bound on the reply, and the status if it is too long.
    fn reply_bound(&self) -> Option<(usize, Status)> {
        let taken = self.taken.as_ref()?;
        let channel = &taken.session.channel;
        let whole = (channel.reply_bytes_max as usize, Status::ReplyTooBig);
        let kept = (channel.kept_bytes_max as usize, Status::ReplyTooBigToCache);
        Some(if taken.keeps && kept.0 < whole.0 { kept } else { whole })
    }

    /// The client that the session is of.
    pub(super) fn client(&self) -> Result<u64, Status> {
        self.taken.as_ref().map(|taken| taken.session.client).ok_or(Status::OperationNotInSession)
    }

    /// The number of bytes of the call's record.
    pub(super) fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// The bytes that are the same whenever the client sends the call again.
    pub(super) fn repeated<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.arguments_at..]
    }

    /// The number of operations.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether the operation in progress is the last.
    pub(super) fn is_last(&self) -> bool {
        self.done + 1 == self.count
    }

    /// The current object.
    pub(super) fn object(&self) -> Result<&Object<P>, Status> {
        self.current.as_ref().ok_or(Status::NoFileHandle)
    }

    /// Makes an object the current one; the current stateid was another object's.
    pub(super) fn enter(&mut self, object: Object<P>) {
        self.current = Some(object);
        self.stateid = Stateid::ANONYMOUS;
    }
}

/// An operation would wait: a worker goes on with it.
pub(super) struct WouldWait;

/// Begins a result with success; a failure is written over it.
fn begin_result(writer: &mut Writer, number: u32) {
    writer.u32(number);
    writer.u32(Status::Ok.code());
}

/// Carries out the rest of the operations.
async fn run<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
) -> Result<(), WouldWait> {
    while compound.done < compound.count && compound.status == Status::Ok {
        let start = draft.mark();
        let Ok((number, read)) = codec::operation(on.record(), compound.at, compound.minor) else {
            compound.status = Status::BadXdr;
            break;
        };
        let Ok((operation, next)) = read else {
            compound.failed(draft, number, start, Status::BadXdr);
            break;
        };
        begin_result(&mut draft.writer, number);
        let bound = compound.reply_bound();
        let room = bound.map_or(usize::MAX, |(bytes, _)| bytes.saturating_sub(draft.bytes()));
        let done = match bound {
            Some((_, status)) if operations::changes(&operation) && room < CHANGE_BYTES_MAX => {
                Err(Stop::Failed(status))
            }
            _ => operations::carry_out(on, compound, draft, &operation).await,
        };
        // Only what changes nothing may fail for its length afterwards.
        let done = match (done, bound) {
            (Ok(()), Some((bytes, status))) if draft.bytes() > bytes => Err(Stop::Failed(status)),
            (done, _) => done,
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

/// Carries out a compound from the operation on that would have waited.
pub(crate) async fn carry_out<P: Platform>(volume: &Volume<P>, waiting: WaitingCompound<P>) -> Reply {
    let WaitingCompound { by, record, mut compound, mut draft } = waiting;
    let on = Task { volume, caller: &by.caller, client: &by.client, record: &record, before: Before::Nothing };
    if run(&on, &mut compound, &mut draft).await.is_err() {
        unreachable!("a compound that may wait has stopped instead");
    }
    compound.end(&mut draft);
    draft.finish()
}
