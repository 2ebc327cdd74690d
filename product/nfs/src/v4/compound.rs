//! A compound in progress: the state that an operation passes on to the next.
//!
//! Owns: the current and the saved object and stateid, the slot that the compound has taken, the bounds that its
//! session sets, the count of results; what the compounds of a connection have in common; the kinds and names that
//! operations take, the form of a directory's change.
//! Does not own: the operations (`operations`), reading them (`codec`), their order (`course`), the objects (the
//! volume).
//! Invariants: a taken slot is given back with every end of the compound. A connection has one of these for all
//! compounds that need not wait, since the session and the file are as a rule those of the compound before. No file is
//! held for that beyond a poll (`a_connection_holds_no_file_between_its_calls`). A change is said to be atomic only
//! with its own before and after.

use std::sync::Arc;

use afflux_frontend::{CallKey, DoneStep, EarlierProgress, JournalCall, Party};
use afflux_volume::{
    Before, Caller, Consistency, Inode, Kind, NAME_BYTES_MAX, Platform, TARGET_BYTES_MAX, Timestamp, Volume,
    XATTR_BYTES_MAX,
};

use crate::limits::{ACL_BYTES_MAX, READ_BYTES_MAX};
use crate::operations::wall_ns;
use crate::status::NfsStatus;
use crate::v4::attributes::{self, change_of};
use crate::v4::codec::{self, ArgOp, Bitmap, Head};
use crate::v4::locking::Denied;
use crate::v4::opnum;
use crate::v4::service::{Service, Shared};
use crate::v4::state::clients::Speaker;
use crate::v4::state::sessions::Session;
use crate::v4::state::slots::SessionId;
use crate::v4::state::stateids::Stateid;
use crate::wire::outbox::Outbox;
use crate::wire::reply::{Draft, Mark};
use crate::wire::xdr::Writer;

/// An object that a handle names.
pub(super) enum Object<P: Platform> {
    /// The directory of all exports.
    Above,
    Inode(Arc<Inode<P>>),
}

impl<P: Platform> Clone for Object<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Above => Self::Above,
            Self::Inode(inode) => Self::Inode(Arc::clone(inode)),
        }
    }
}

/// The current object or the saved one, with its stateid: both change, are saved and restored together.
struct Current<P: Platform> {
    object: Object<P>,
    stateid: Stateid,
}

impl<P: Platform> Clone for Current<P> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), stateid: self.stateid }
    }
}

/// A slot of its session that the compound has taken.
pub(super) struct TakenSlot {
    slot: u32,
    /// The reply is cached for a repetition.
    keeps: bool,
    /// Its key in the journal, if a later server is to find it there.
    key: Option<CallKey>,
    /// Its entry, once it has begun to change something.
    call: Option<JournalCall>,
}

impl TakenSlot {
    pub(super) fn new(slot: u32, keeps: bool, key: Option<CallKey>) -> Self {
        Self { slot, keeps, key, call: None }
    }
}

/// A compound in progress, or the state for a connection's next one.
pub(crate) struct Compound<P: Platform> {
    pub(super) service: Shared<P>,
    /// The calls of this server over the same connection.
    pub(crate) outbox: Arc<Outbox>,
    /// The session of the slot; without a slot, that of the compound before.
    pub(super) session: Option<Arc<Session>>,
    /// The object of an earlier compound of the same poll.
    earlier: Option<Arc<Inode<P>>>,
    pub(super) speaker: Speaker,
    pub(super) minor: u32,
    pub(super) now_ns: u64,
    pub(super) taken: Option<TakenSlot>,
    current: Option<Current<P>>,
    saved: Option<Current<P>>,
    /// Bytes that READs and listings may still take.
    pub(super) data_remaining: u32,
    pub(super) count: u32,
    pub(super) done: u32,
    /// Where the next operation starts.
    pub(super) at: usize,
    /// Where the arguments start, behind the call's number and credentials.
    arguments_at: usize,
    /// The start of the operation that was recorded last.
    pub(super) recorded_at: usize,
    record_bytes: usize,
    pub(super) status: NfsStatus,
    /// It has begun what a repetition would not do again.
    pub(super) has_changed: bool,
    /// The lock that conflicts with a refused one.
    pub(super) denied: Option<Box<Denied>>,
    /// The attributes that a SETATTR in progress has set.
    pub(super) attributes_set: Bitmap,
    /// An earlier server's progress with it.
    earlier_progress: Option<Box<EarlierProgress>>,
    /// Where the number of results is in the reply.
    count_at: Mark,
}

/// A compound that has been read as far as its head.
pub(crate) struct Arrived(Head);

/// Reads the head of a compound whose arguments start at `at`. None if it has no head.
#[inline]
pub(crate) fn arrived(record: &[u8], at: usize) -> Option<Arrived> {
    codec::head(record, at).ok().map(Arrived)
}

impl Arrived {
    /// Bytes of data that the reply will have at most, as far as the operations show.
    pub(crate) fn data_bytes_max(&self, record: &[u8]) -> u32 {
        let Self(head) = self;
        let (passed, at) = codec::behind_usual(record, head.at);
        let of_last = if passed + 1 == head.count { codec::data_asked(record, at) } else { None };
        of_last.unwrap_or_else(|| data_of_all(record, at, passed, head)).min(READ_BYTES_MAX)
    }
}

/// How much data the operations ask for that start at `at`, behind some that ask for none.
#[cold]
fn data_of_all(record: &[u8], mut at: usize, passed: u32, head: &Head) -> u32 {
    let (mut wanted, mut operation) = (0_u32, ArgOp::Unsupported);
    // The session may allow fewer.
    for number in passed..head.count.min(super::state::slots::OPERATIONS_MAX) {
        if number + 1 == head.count
            && let Some(asked) = codec::data_asked(record, at)
        {
            return wanted.saturating_add(asked.min(READ_BYTES_MAX));
        }
        let Ok((_, Ok(next))) = codec::read_operation(record, at, head.minor, &mut operation) else { break };
        at = next;
        wanted = wanted.saturating_add(match operation {
            ArgOp::Read { count, .. } => count.min(READ_BYTES_MAX),
            ArgOp::Readdir(list) => list.bytes_max.min(crate::limits::LISTING_BYTES_MAX),
            ArgOp::Readlink => TARGET_BYTES_MAX as u32,
            ArgOp::Getxattr(_) => XATTR_BYTES_MAX as u32,
            ArgOp::Getattr(ref asked) if asked.has_any(attributes::OF_ACLS) => 2 * ACL_BYTES_MAX,
            ArgOp::Listxattrs { bytes_max, .. } => bytes_max.min(XATTR_BYTES_MAX as u32),
            _ => 0,
        });
    }
    wanted
}

impl<P: Platform> Compound<P> {
    /// The state for a connection's compounds.
    pub(crate) fn of_connection(service: &Arc<Service<P>>, party: Party) -> Self {
        Self::with(Arc::clone(service), Arc::default(), (party, None), None)
    }

    fn with(service: Shared<P>, outbox: Arc<Outbox>, speaker: Speaker, session: Option<Arc<Session>>) -> Self {
        Self {
            service,
            outbox,
            session,
            earlier: None,
            speaker,
            minor: 0,
            now_ns: 0,
            taken: None,
            current: None,
            saved: None,
            data_remaining: 0,
            count: 0,
            done: 0,
            at: 0,
            arguments_at: 0,
            recorded_at: 0,
            record_bytes: 0,
            status: NfsStatus::Ok,
            has_changed: false,
            denied: None,
            attributes_set: Bitmap::default(),
            earlier_progress: None,
            count_at: Mark::default(),
        }
    }

    /// Begins a compound of a party and a user, and its reply.
    pub(crate) fn begin(
        &mut self,
        speaker: Speaker,
        now_ns: u64,
        record: &[u8],
        Arrived(head): &Arrived,
        data_remaining: u32,
        draft: &mut Draft,
    ) {
        self.count_at = draft.begin_compound(&record[head.tag.range()]);
        if let Some(Current { object: Object::Inode(inode), .. }) = self.current.take() {
            self.earlier = Some(inode);
        }
        (self.speaker, self.minor, self.now_ns) = (speaker, head.minor, now_ns);
        self.saved = None;
        (self.data_remaining, self.count, self.done, self.at) = (data_remaining, head.count, 0, head.at);
        (self.arguments_at, self.record_bytes) = (head.tag.range().start - 4, record.len());
        (self.status, self.has_changed) = (NfsStatus::Ok, false);
        (self.denied, self.earlier_progress) = (None, None);
        (self.attributes_set, self.recorded_at) = (Bitmap::default(), 0);
    }

    /// Whether it may not be dropped.
    pub(crate) fn has_to_last(&self) -> bool {
        self.has_changed
    }

    /// The compound in progress, to be continued apart from the connection's next ones.
    pub(crate) fn split_off(&mut self) -> Self {
        let (service, outbox) = (Arc::clone(&self.service), Arc::clone(&self.outbox));
        let next = Self::with(service, outbox, self.speaker, self.session.clone());
        self.earlier = None;
        std::mem::replace(self, next)
    }

    /// Lets go of the files of the compounds that have ended.
    pub(crate) fn rest(&mut self) {
        (self.earlier, self.current, self.saved) = (None, None, None);
    }

    /// Makes a session of its party its own. It gets a slot there next.
    pub(super) fn join(&mut self, id: &SessionId) -> Result<(), NfsStatus> {
        if self.session.as_ref().is_none_or(|known| known.id != *id) {
            self.session = Some(self.service.state().sessions.find(id, self.speaker.0)?);
        }
        Ok(())
    }

    /// The session in which it has a slot.
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|_| self.taken.is_some())
    }

    /// The bound on the reply, and the status if it is too long.
    pub(super) fn reply_bound(&self) -> (usize, NfsStatus) {
        let (Some(session), Some(taken)) = (&self.session, &self.taken) else {
            return (usize::MAX, NfsStatus::RepTooBig);
        };
        let whole = (session.channel.maxresponsesize as usize, NfsStatus::RepTooBig);
        let cached = (session.channel.maxresponsesize_cached as usize, NfsStatus::RepTooBigToCache);
        if taken.keeps && cached.0 < whole.0 { cached } else { whole }
    }

    /// Enters the object of a handle if it is that of an earlier compound of the poll.
    pub(super) fn try_enter_again(&mut self, handle: &[u8]) -> bool {
        let Some(inode) = self.earlier.take_if(|inode| self.service.volume.is_still_at(inode, handle)) else {
            return false;
        };
        self.enter(Object::Inode(inode));
        true
    }

    pub(super) fn ended_one(&mut self, number: u32) {
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes the result of an operation that failed, which starts at `start`.
    pub(super) fn failed(&mut self, draft: &mut Draft, number: u32, start: Mark, status: NfsStatus) {
        draft.back_to(start);
        let shown = if matches!(status, NfsStatus::OpIllegal) { opnum::ILLEGAL } else { number };
        draft.writer.words([shown, status.code()]);
        if number == opnum::SETATTR {
            std::mem::take(&mut self.attributes_set).write(&mut draft.writer);
        }
        if let Some(denied) = self.denied.take().filter(|_| status == NfsStatus::Denied) {
            denied.write(&mut draft.writer);
        }
        self.status = status;
        self.done += 1;
        self.service.counts.count(number);
    }

    /// Writes what is only known at the end, and gives the slot back.
    pub(super) fn end(&mut self, draft: &mut Draft) {
        draft.patch(self.count_at, self.done);
        if self.status != NfsStatus::Ok {
            draft.restate(self.status);
        }
        let (Some(session), Some(taken)) = (&self.session, &self.taken) else { return };
        let (status, steps) = (self.status.code(), self.done);
        let keep = taken.keeps.then_some(|into: &mut Vec<u8>| {
            draft.copy_results(into);
            taken.call.iter().for_each(|call| call.answered(status, into, steps));
        });
        session.slots().end(taken.slot, keep);
        self.taken = None;
    }

    /// Whether a later server finds the call once it has begun to change something.
    pub(super) fn is_found_later(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.key.is_some())
    }

    /// Something is about to change: a later server finds the call.
    pub(super) fn begin_change(&mut self, volume: &Volume<P>) {
        let (Some(taken), Some(journal)) = (&mut self.taken, &self.service.journal) else { return };
        let (Some(key), None) = (taken.key, &taken.call) else { return };
        let (call, earlier_progress) = journal.begin(key, wall_ns(volume), 0);
        taken.call = Some(call);
        self.earlier_progress = (earlier_progress != EarlierProgress::Nothing).then(|| Box::new(earlier_progress));
    }

    /// The number of the operation in progress, as the journal has it.
    fn step(&self) -> u16 {
        u16::try_from(self.done).unwrap_or(u16::MAX)
    }

    /// The part of the operation in progress that an earlier server has done.
    pub(super) fn before(&self) -> Before {
        self.earlier_progress.as_ref().map_or(Before::Nothing, |earlier_progress| earlier_progress.before(self.step()))
    }

    /// The status that an earlier server ended the call with, if the operation in progress is the one that failed. A
    /// conflicting lock is searched for again, since the reply describes it.
    pub(super) fn refused_before(&self) -> Option<NfsStatus> {
        let status = NfsStatus::from_code(self.earlier_progress.as_ref()?.refused(self.step())?)?;
        (status != NfsStatus::Denied).then_some(status)
    }

    /// The caller of the change that the operation in progress makes, which is noted for a later server.
    pub(super) fn changing(&self, caller: &Caller) -> Caller {
        let caller = match self.taken.as_ref().and_then(|taken| taken.call.as_ref()) {
            Some(call) => caller.clone().keeping(call.step(self.step(), self.before())),
            None => caller.clone(),
        };
        // A client does not recall its own delegations.
        match self.session() {
            Some(session) => caller.holding(session.clientid),
            None => caller,
        }
    }

    /// The operation in progress is about to end a piece of state, which is there.
    pub(super) fn note_end(&self) {
        if let Some(call) = self.taken.as_ref().and_then(|taken| taken.call.as_ref()) {
            call.note_done(DoneStep { step: self.step(), object: 0 });
        }
    }

    /// The operation in progress, the same whenever the call comes; 0 if a later server does not find it.
    pub(super) fn mark(&self) -> u64 {
        let key = self.taken.as_ref().and_then(|taken| taken.key);
        key.map_or(0, |[call, bytes, _]| (call ^ bytes).wrapping_add(u64::from(self.done)).max(1))
    }

    /// The stateid that the operation in progress has made or changed already, by an earlier server.
    pub(super) fn changed_before(&self) -> Option<Stateid> {
        self.earlier_progress.is_some().then(|| self.service.changed_by(self.mark())).flatten()
    }

    /// The result of what can be done once: the end of a stateid, or of reclaiming. A repetition finds it done if an
    /// earlier server has noted the end.
    pub(super) fn ended_before(&self, result: Result<(), NfsStatus>) -> Result<(), NfsStatus> {
        match result {
            Err(NfsStatus::BadStateid | NfsStatus::CompleteAlready) if matches!(self.before(), Before::Done { .. }) => {
                Ok(())
            }
            result => result,
        }
    }

    /// The client that the session is of.
    pub(super) fn clientid(&self) -> Result<u64, NfsStatus> {
        self.session().map(|session| session.clientid).ok_or(NfsStatus::OpNotInSession)
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
        attributes::known(self.minor, self.has_xattrs(), self.minor >= 2 && self.service.has_posix_acls())
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
    pub(super) fn object(&self) -> Result<&Object<P>, NfsStatus> {
        self.current.as_ref().map(|current| &current.object).ok_or(NfsStatus::Nofilehandle)
    }

    /// The current stateid: without one, the anonymous one.
    pub(super) fn stateid(&self) -> Stateid {
        self.current.as_ref().map_or(Stateid::ANONYMOUS, |current| current.stateid)
    }

    /// An operation on the current object has given its client this stateid.
    pub(super) fn set_stateid(&mut self, stateid: Stateid) {
        self.current.iter_mut().for_each(|current| current.stateid = stateid);
    }

    /// There is no current object from here on.
    pub(super) fn leave(&mut self) {
        self.current = None;
    }

    /// Makes an object the current one; the current stateid was another object's.
    pub(super) fn enter(&mut self, object: Object<P>) {
        self.current = Some(Current { object, stateid: Stateid::ANONYMOUS });
    }

    /// Saves the current object with its stateid.
    pub(super) fn savefh(&mut self) -> Result<(), NfsStatus> {
        self.saved = Some(self.current.clone().ok_or(NfsStatus::Nofilehandle)?);
        Ok(())
    }

    /// Makes the saved object the current one, with the stateid that it had then.
    pub(super) fn restorefh(&mut self) -> Result<(), NfsStatus> {
        self.current = Some(self.saved.clone().ok_or(NfsStatus::Nofilehandle)?);
        Ok(())
    }

    /// The saved object.
    pub(super) fn saved(&self) -> Result<&Object<P>, NfsStatus> {
        self.saved.as_ref().map(|saved| &saved.object).ok_or(NfsStatus::Nofilehandle)
    }
}

impl<P: Platform> Drop for Compound<P> {
    fn drop(&mut self) {
        if let (Some(session), Some(taken)) = (&self.session, &self.taken) {
            let mut slots = session.slots();
            match self.has_changed {
                true => slots.end(taken.slot, None::<fn(&mut Vec<u8>)>),
                false => slots.drop_call(taken.slot),
            }
        }
    }
}

impl<P: Platform> Compound<P> {
    /// The current object, if it is below an export.
    pub(crate) fn inode(&self) -> Result<Arc<Inode<P>>, NfsStatus> {
        match self.object()? {
            Object::Inode(inode) => Ok(Arc::clone(inode)),
            Object::Above => Err(NfsStatus::Isdir),
        }
    }

    /// The current directory below an export, for a change of its names.
    pub(crate) fn directory(&self) -> Result<Arc<Inode<P>>, NfsStatus> {
        match self.object()? {
            Object::Above => Err(NfsStatus::Rofs),
            Object::Inode(inode) => {
                check_directory(inode.kind())?;
                Ok(Arc::clone(inode))
            }
        }
    }
}

pub(crate) fn check_directory(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Directory => Ok(()),
        Kind::Symlink => Err(NfsStatus::Symlink),
        _ => Err(NfsStatus::Notdir),
    }
}

pub(crate) fn check_regular(kind: Kind) -> Result<(), NfsStatus> {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory => Err(NfsStatus::Isdir),
        Kind::Symlink => Err(NfsStatus::Symlink),
        _ => Err(NfsStatus::WrongType),
    }
}

/// Refuses what no directory has as a name.
pub(crate) fn check_name(name: &[u8]) -> Result<(), NfsStatus> {
    match name {
        b"" => Err(NfsStatus::Inval),
        b"." | b".." => Err(NfsStatus::Badname),
        _ if name.len() > NAME_BYTES_MAX => Err(NfsStatus::Nametoolong),
        _ if name.contains(&b'/') || name.contains(&0) => Err(NfsStatus::Badchar),
        _ => Ok(()),
    }
}

/// Writes the change of a directory.
pub(crate) fn write_change(writer: &mut Writer, consistency: &Consistency) {
    let time = |time: Option<Timestamp>| time.map(change_of).unwrap_or_default();
    let before = consistency.before.map(|before| before.ctime);
    let after = consistency.after.map(|after| after.ctime);
    writer.bool(before.is_some() && after.is_some());
    writer.u64(time(before));
    writer.u64(time(after));
}

#[cfg(test)]
mod tests;
