//! A compound in progress: the state that an operation passes on to the next.
//!
//! Owns: the current and the saved object and stateid, the slot that the compound has taken, the bounds that its
//! session sets, the count of results.
//! Does not own: the operations (`operations`), reading them (`codec`), their order (`course`).
//! Invariants: a taken slot is given back with every end of the compound.

use std::sync::Arc;

use afflux_frontend::{CallKeys, JournalCall, Left, Party};
use afflux_volume::{Before, Inode, Platform, Volume, XATTR_BYTES_MAX};

use super::attributes;
use super::codec::{self, Bitmap, CompoundOperation, Head, number};
use super::denied::Denied;
use super::service::{Service, Shared};
use super::state::agreed::SessionId;
use super::state::clients::Speaker;
use super::state::sessions::Session;
use super::state::stateids::Stateid;
use crate::limits::READ_BYTES_MAX;
use crate::operations::wall_ns;
use crate::status::Status;
use crate::wire::outbox::Outbox;
use crate::wire::reply::{Draft, Mark};

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
    /// Its keys in the journal, if a later server is to find it there.
    keys: Option<CallKeys>,
    /// Its entry, once it has begun to change something.
    call: Option<JournalCall>,
    has_ended: bool,
}

impl TakenSlot {
    /// The bound on the reply, and the status if it is too long.
    pub(super) fn reply_bound(&self) -> (usize, Status) {
        let channel = &self.session.channel;
        let whole = (channel.reply_bytes_max as usize, Status::ReplyTooBig);
        let kept = (channel.kept_bytes_max as usize, Status::ReplyTooBigToCache);
        if self.keeps && kept.0 < whole.0 { kept } else { whole }
    }

    pub(super) fn new(session: Arc<Session>, slot: u32, keeps: bool, keys: Option<CallKeys>) -> Self {
        Self { session, slot, keeps, keys, call: None, has_ended: false }
    }

    fn end(&mut self, draft: &Draft) {
        self.has_ended = true;
        let call = &self.call;
        let keep = self.keeps.then_some(|into: &mut Vec<u8>| {
            draft.copy_results(into);
            call.iter().for_each(|call| call.answered(0, into));
        });
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

/// The part of version 4 that belongs to a connection.
pub(crate) struct OfConnection {
    /// The calls of this server over it.
    pub(crate) outbox: Arc<Outbox>,
    party: Party,
    /// The session of its last compound, as a rule that of the next one.
    session: Option<Arc<Session>>,
}

impl OfConnection {
    /// Without compounds yet.
    pub(crate) fn new(party: Party) -> Self {
        Self { outbox: Arc::default(), party, session: None }
    }

    /// The session with this number.
    pub(super) fn session<P: Platform>(
        &mut self,
        service: &Service<P>,
        id: &SessionId,
    ) -> Result<Arc<Session>, Status> {
        match &self.session {
            Some(known) if known.id == *id => Ok(Arc::clone(known)),
            _ => {
                let found = service.state().sessions.find(id, self.party)?;
                Ok(Arc::clone(self.session.insert(found)))
            }
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
    /// The current object is the root of the single export, under the handle that its path leads to.
    pub(super) is_by_path: bool,
    pub(super) saved: Option<Object<P>>,
    pub(super) stateid: Stateid,
    pub(super) saved_stateid: Stateid,
    /// Bytes that READs and listings may still take.
    pub(super) data_left: u32,
    pub(super) count: u32,
    pub(super) done: u32,
    /// Where the next operation starts.
    pub(super) at: usize,
    /// Where the arguments start, behind the call's number and credentials.
    arguments_at: usize,
    record_bytes: usize,
    pub(super) status: Status,
    /// The lock in the way of one that was refused.
    pub(super) denied: Option<Box<Denied>>,
    /// An earlier server's progress with it.
    pub(super) before: Before,
    /// The calls of this server over the same connection.
    pub(super) outbox: Arc<Outbox>,
    /// Where the number of results is in the reply.
    count_at: Mark,
}

/// A compound that has been read as far as its head.
pub(crate) struct Arrived {
    head: Head,
    /// Bytes of data that its reply will have at most.
    pub(crate) data_bytes_max: u32,
}

/// Reads the head of a compound whose arguments start at `at`, and how much data it asks for. None if it has no head.
#[inline]
pub(crate) fn arrived(record: &[u8], at: usize) -> Option<Arrived> {
    let head = codec::head(record, at).ok()?;
    let (passed, at) = codec::behind_usual(record, head.at);
    let of_last = if passed + 1 == head.count { codec::data_asked(record, at) } else { None };
    let wanted = of_last.unwrap_or_else(|| data_of_all(record, at, passed, &head));
    Some(Arrived { head, data_bytes_max: wanted.min(READ_BYTES_MAX) })
}

/// How much data the operations ask for that start at `at`, behind some that ask for none.
#[cold]
fn data_of_all(record: &[u8], mut at: usize, passed: u32, head: &Head) -> u32 {
    let (mut wanted, mut operation) = (0_u32, CompoundOperation::Unsupported);
    // The session may allow fewer.
    for number in passed..head.count.min(super::state::agreed::OPERATIONS_MAX) {
        if number + 1 == head.count
            && let Some(asked) = codec::data_asked(record, at)
        {
            return wanted.saturating_add(asked.min(READ_BYTES_MAX));
        }
        let Ok((_, Ok(next))) = codec::read_operation(record, at, head.minor, &mut operation) else { break };
        at = next;
        wanted = wanted.saturating_add(match operation {
            CompoundOperation::Read { count, .. } => count.min(READ_BYTES_MAX),
            CompoundOperation::List(list) => list.bytes_max.min(crate::limits::LISTING_BYTES_MAX),
            CompoundOperation::GetXattr(_) => XATTR_BYTES_MAX as u32,
            CompoundOperation::ListXattrs { bytes_max, .. } => bytes_max.min(XATTR_BYTES_MAX as u32),
            _ => 0,
        });
    }
    wanted
}

impl<P: Platform> Compound<P> {
    /// Begins a compound, and its reply.
    pub(crate) fn new(
        (service, connection): (&Arc<Service<P>>, &OfConnection),
        user: Option<u32>,
        now_ns: u64,
        (record, arrived): (&[u8], Arrived),
        data_left: u32,
        draft: &mut Draft,
    ) -> Self {
        let head = arrived.head;
        let count_at = draft.begin_compound(&record[head.tag.range()]);
        Self {
            service: Arc::clone(service),
            speaker: (connection.party, user),
            minor: head.minor,
            now_ns,
            taken: None,
            current: None,
            is_by_path: false,
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
            denied: None,
            before: Before::Nothing,
            outbox: Arc::clone(&connection.outbox),
            count_at,
        }
    }

    pub(super) fn ended_one(&mut self, number: u32) {
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes the result of an operation that failed, which starts at `start`.
    pub(super) fn failed(&mut self, draft: &mut Draft, number: u32, start: Mark, status: Status) {
        draft.back_to(start);
        let shown = if matches!(status, Status::OperationIllegal) { number::ILLEGAL } else { number };
        draft.writer.words([shown, status.code()]);
        const SETATTR: u32 = 34;
        if number == SETATTR {
            // No attribute was set.
            draft.writer.u32(0);
        }
        if let Some(denied) = self.denied.take().filter(|_| status == Status::LockDenied) {
            denied.write(&mut draft.writer);
        }
        self.status = status;
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes what is only known at the end, and gives the slot back.
    pub(super) fn end(&mut self, draft: &mut Draft) {
        draft.patch(self.count_at, self.done);
        if self.status != Status::Ok {
            draft.restate(self.status);
        }
        if let Some(taken) = &mut self.taken {
            taken.end(draft);
        }
    }

    /// Whether a later server finds the call once it has begun to change something.
    pub(super) fn is_found_later(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.keys.is_some())
    }

    /// Something is about to change: a later server finds the call.
    pub(super) fn begin_change(&mut self, volume: &Volume<P>) {
        let (Some(taken), Some(journal)) = (&mut self.taken, &self.service.journal) else { return };
        let (Some(keys), None) = (taken.keys, &taken.call) else { return };
        let (call, left) = journal.begin(keys, wall_ns(volume), 0);
        taken.call = Some(call);
        if let Left::Begun { value, object } = left {
            self.before = Before::Begun { value, object };
        }
    }

    /// The call is about an object with this number, unless an earlier server has noted one.
    pub(super) fn note_object(&self, volume: &Volume<P>, object: u64) {
        let call = self.taken.as_ref().and_then(|taken| taken.call.as_ref());
        if let (Some(call), Before::Nothing) = (call, self.before) {
            call.note(wall_ns(volume), object);
        }
    }

    /// Whether the call is kept for a later server.
    pub(super) fn is_in_journal(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.call.is_some())
    }

    /// The operation in progress, the same whenever the call comes; 0 if a later server does not find it.
    pub(super) fn mark(&self) -> u64 {
        let keys = self.taken.as_ref().and_then(|taken| taken.keys);
        keys.map_or(0, |[[call, bytes, _], _]| (call ^ bytes).wrapping_add(u64::from(self.done)).max(1))
    }

    /// The stateid that the operation in progress has made or changed already, by an earlier server.
    pub(super) fn changed_before(&self) -> Option<Stateid> {
        let is_again = self.before != Before::Nothing;
        is_again.then(|| self.service.changed_by(self.mark())).flatten()
    }

    /// The result of what can be done once: the end of a stateid, or of reclaiming. A repetition finds it done if an
    /// earlier server has done it.
    pub(super) fn ended_before(&self, result: Result<(), Status>) -> Result<(), Status> {
        match result {
            Err(Status::BadStateid | Status::CompleteAlready) if self.before != Before::Nothing => Ok(()),
            result => result,
        }
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

    /// Whether extended attributes are offered.
    pub(super) fn has_xattrs(&self) -> bool {
        self.minor >= 2 && self.service.has_xattrs()
    }

    /// All attributes that a client may ask for.
    pub(super) fn known(&self) -> Bitmap {
        attributes::known(self.minor, self.has_xattrs())
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
        self.is_by_path = false;
        self.stateid = Stateid::ANONYMOUS;
    }

    /// The session of a client that may be on its way from the root to the directory of a mount.
    pub(super) fn walker(&self) -> Option<&Session> {
        self.taken.as_ref().map(|taken| &*taken.session).filter(|session| session.is_walking())
    }

    /// Whether a directory is the root of the single export, which is the root of all.
    pub(super) fn is_root(&self, directory: &Inode<P>) -> bool {
        let handle = || self.service.volume.handle(directory);
        self.service.single.get().is_some_and(|single| *single == handle())
    }

    /// The client uses a directory: if it is the root, the client is not on its way through it.
    pub(super) fn uses(&self, directory: &Inode<P>) {
        if let Some(walker) = self.walker()
            && self.is_root(directory)
        {
            walker.end_walk();
        }
    }
}
