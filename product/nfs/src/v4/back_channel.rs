//! The calls of a session's server to its client, and the notices of free locks and the recalls of delegations that no
//! call carries yet.
//!
//! Owns: the number of the single slot, the bytes of a call, the meaning of its answer; the order of a client's
//! notices, the sessions that may carry the next one.
//! Does not own: the connection that carries the calls (`wire::outbox`), the waits and the time limit of a recall (the
//! volume), delegations (`state::delegations`).
//! Invariants: one call is under way at a time, and it is sent again with its number: over a new connection, and to a
//! client that was busy. A client that never answers holds up nothing else. A call that the client has not carried out
//! counts as no notice: the session then calls no more until the client binds a connection anew, and gives its notice
//! back. So does a session that ends. A notice goes over any session of its client whose back channel works. Without
//! one the notice waits for the next, also for that of a later session. At most [`WAITING_MAX`] notices wait; the
//! oldest goes. A delegation waits once at most, and goes before notices. No notice waits while a session is idle. A
//! notice asks idle sessions until one has taken the notice. A session that cannot call is asked once
//! (`back_channel/tests/lock_notices.rs`). The lock of the notices is a leaf.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use afflux_frontend::{Party, PersistedItem};
use afflux_volume::LockWaker;

use crate::status::NfsStatus;
use crate::v4::state::persisted::{Memory, PersistedWait, Record};
use crate::v4::state::slots::{CallbackSecurity, SessionId};
use crate::wire::outbox::{Asker, Outbox};
use crate::wire::xdr::{Reader, Writer, XdrError};

/// A call that the client has not answered.
struct UnderWay {
    body: Vec<u8>,
    notice: Option<ClientNotice>,
}

#[derive(Default)]
struct State {
    calling: CallbackSecurity,
    minor: u32,
    /// The connection that carries the calls.
    outbox: Weak<Outbox>,
    /// Calls so far, which is the number of the last one on its slot.
    sequenceid: u32,
    /// The call under way.
    under_way: Option<UnderWay>,
    /// The client has postponed the call under way, and a timer runs.
    is_put_off: bool,
    /// The client has carried out a call over this connection.
    is_proven: bool,
    /// The client has not carried out the last call, and would not carry out further ones.
    is_faulty: bool,
    has_ended: bool,
    /// Where the number of the last call is persisted for a later server.
    persisted: Option<(Memory, u32, Party)>,
    item: PersistedItem,
}

/// The back channel of a session.
pub(crate) struct BackChannel {
    /// The session's number.
    pub(crate) session: SessionId,
    /// The index of the session among those of the client.
    index: u64,
    /// The client has asked for a back channel.
    is_wanted: AtomicBool,
    /// Those of its client.
    notices: Arc<LockNotices>,
    state: Mutex<State>,
}

/// How often an earlier server has called the client over a session, and the item that persists it.
#[derive(Default)]
pub(crate) struct CallbackSequence {
    pub(crate) sequenceid: u32,
    pub(crate) item: PersistedItem,
}

/// The meaning of a client's answer to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CallAnswer {
    /// The client knows the notice.
    Done,
    /// The client is busy with its session, and has not counted the call. Linux's client is so from before its
    /// BIND_CONN_TO_SESSION until after the reply, and the first call comes in between.
    PutOff,
    /// The client does not carry out calls of this session: it does not know the session or the number, or it knows no
    /// such calls.
    Fault,
}

/// Wakes by telling a client.
pub(crate) struct LockCall {
    pub(crate) notices: Arc<LockNotices>,
    /// The id of the open that the owner waits with.
    pub(crate) open: u32,
    pub(crate) notice: LockNotice,
}

impl LockWaker for LockCall {
    fn wake(&self) {
        self.notices.notify(self.notice.clone());
    }

    fn open(&self) -> Option<u64> {
        Some(self.open.into())
    }
}

impl BackChannel {
    /// The session with this number is not called yet.
    pub(crate) fn new(session: SessionId, notices: &Arc<LockNotices>) -> Arc<Self> {
        Self::of(session, notices, false, State::default())
    }

    fn of(session: SessionId, notices: &Arc<LockNotices>, is_wanted: bool, state: State) -> Arc<Self> {
        let (is_wanted, notices) = (AtomicBool::new(is_wanted), Arc::clone(notices));
        Arc::new(Self { session, index: notices.next_session(), is_wanted, notices, state: Mutex::new(state) })
    }

    /// An earlier server has called the client so often. The client may not know the last call: it comes again, without
    /// a notice.
    pub(crate) fn inherited(
        session: SessionId,
        notices: &Arc<LockNotices>,
        calling: CallbackSecurity,
        minor: u32,
        is_wanted: bool,
        CallbackSequence { sequenceid, item }: CallbackSequence,
    ) -> Arc<Self> {
        let mut state = State { calling, minor, sequenceid, item, ..State::default() };
        state.under_way = (sequenceid > 0).then(|| UnderWay { body: call(&state, &session, None), notice: None });
        Self::of(session, notices, is_wanted, state)
    }

    /// How the client wants to be called, and whether it does.
    pub(crate) fn manner(&self) -> (CallbackSecurity, u32, bool) {
        let state = self.lock();
        (state.calling, state.minor, self.is_wanted.load(Ordering::Relaxed))
    }

    /// Persists the number of each further call for a later server, as an item with this id.
    pub(crate) fn keep_sequence(&self, memory: &Memory, item_id: u32, party: Party) {
        self.lock().persisted = Some((Memory::clone(memory), item_id, party));
    }

    /// A later server need not know.
    pub(crate) fn forget(&self, memory: &Memory, party: Party) {
        let mut state = self.lock();
        state.persisted = None;
        memory.remove(&mut state.item, party);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the client wants to be called.
    pub(crate) fn call_by(&self, calling: CallbackSecurity, minor: u32) {
        let mut state = self.lock();
        (state.calling, state.minor) = (calling, minor);
    }

    /// Calls go over this connection from now on, and the one under way again.
    pub(crate) fn bind(self: &Arc<Self>, outbox: &Arc<Outbox>) {
        let mut state = self.lock();
        state.outbox = Arc::downgrade(outbox);
        (state.is_faulty, state.is_proven) = (false, false);
        self.is_wanted.store(true, Ordering::Relaxed);
        match &state.under_way {
            Some(call) => outbox.send(&call.body, state.sequenceid, self.asker()),
            // Notices that found no connection.
            None => self.send_next(&mut state),
        }
    }

    fn asker(self: &Arc<Self>) -> Weak<dyn Asker> {
        let asker: Weak<Self> = Arc::downgrade(self);
        asker
    }

    /// The session has ended. Its notices go over another session.
    pub(crate) fn end(&self) {
        let under_way = {
            let mut state = self.lock();
            (state.has_ended, state.outbox) = (true, Weak::new());
            state.under_way.take()
        };
        self.notices.remove(self.index);
        under_way.and_then(|call| call.notice).into_iter().for_each(|notice| self.notices.give_back(notice));
    }

    /// The notices of its client.
    pub(crate) fn notices(&self) -> &Arc<LockNotices> {
        &self.notices
    }

    /// Whether a call would find a connection, and a client that carries it out.
    pub(crate) fn is_up(&self) -> bool {
        let state = self.lock();
        state.outbox.strong_count() > 0 && !state.is_faulty
    }

    /// Whether the client has carried out a call over the connection that there is. If it has not been asked, it is
    /// asked now, and a later answer is true.
    pub(crate) fn try_prove(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if state.is_faulty || state.has_ended || state.is_proven {
            return state.is_proven && !state.is_faulty && state.outbox.strong_count() > 0;
        }
        if let (None, Some(outbox)) = (&state.under_way, state.outbox.upgrade()) {
            self.send_call(&mut state, &outbox, None);
        }
        false
    }

    /// Whether the client does not carry out calls of this session.
    pub(crate) fn is_faulty(&self) -> bool {
        self.lock().is_faulty
    }

    /// Whether the client has asked for one: its notices wait for a connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Whether the client has asked for one whose connection is gone.
    pub(crate) fn is_down(&self) -> bool {
        self.is_wanted() && self.lock().outbox.strong_count() == 0
    }

    fn send_next(self: &Arc<Self>, state: &mut State) {
        if state.under_way.is_some() || state.is_faulty || state.has_ended {
            return;
        }
        // A notice stays until there is a connection.
        let Some(outbox) = state.outbox.upgrade() else { return };
        let carrier: Weak<Self> = Arc::downgrade(self);
        let Some(notice) = self.notices.take(self.index, carrier) else { return };
        self.send_call(state, &outbox, Some(notice));
    }

    /// Sends a call with a notice, or one that only shows whether the client answers.
    fn send_call(self: &Arc<Self>, state: &mut State, outbox: &Outbox, notice: Option<ClientNotice>) {
        state.sequenceid = state.sequenceid.wrapping_add(1);
        state.keep();
        let body = call(state, &self.session, notice.as_ref());
        outbox.send(&body, state.sequenceid, self.asker());
        state.under_way = Some(UnderWay { body, notice });
    }
}

impl NoticeCarrier for BackChannel {
    fn carry_next(self: Arc<Self>) {
        self.send_next(&mut self.lock());
    }
}

impl Asker for BackChannel {
    fn try_settle(self: Arc<Self>, mark: u32, reply: &[u8]) -> bool {
        let mut state = self.lock();
        if state.sequenceid != mark || state.under_way.is_none() {
            return true;
        }
        let has_notice = state.under_way.as_ref().is_some_and(|call| call.notice.is_some());
        match CallAnswer::of(reply, has_notice) {
            // One timer is enough.
            CallAnswer::PutOff => return std::mem::replace(&mut state.is_put_off, true),
            CallAnswer::Done => {
                state.is_proven = true;
                if let Some(ClientNotice::Recall(recall)) = state.under_way.take().and_then(|call| call.notice) {
                    recall.answered(is_recall_known(reply));
                }
                self.send_next(&mut state);
            }
            CallAnswer::Fault => {
                // The client has not counted it.
                state.sequenceid = state.sequenceid.wrapping_sub(1);
                state.is_faulty = true;
                let notice = state.under_way.take().and_then(|call| call.notice);
                drop(state);
                notice.into_iter().for_each(|notice| self.notices.give_back(notice));
            }
        }
        true
    }

    fn call_again(self: Arc<Self>) {
        let mut state = self.lock();
        state.is_put_off = false;
        if let (Some(call), Some(outbox)) = (&state.under_way, state.outbox.upgrade()) {
            outbox.send(&call.body, state.sequenceid, self.asker());
        }
    }
}

impl CallAnswer {
    /// Of a reply to a call with or without a notice (RFC 8881, 20.9.3). After a refused CB_SEQUENCE the client
    /// has carried out nothing, with two exceptions. The client has carried out this call before, and has no reply of
    /// it. Or the client has carried out another call with this sequenceid.
    fn of(reply: &[u8], has_notice: bool) -> Self {
        match sequence_status(reply) {
            Ok(Some(0)) => Self::Done,
            Ok(Some(status)) if status == NfsStatus::Delay.code() => Self::PutOff,
            Ok(Some(status)) if status == NfsStatus::RetryUncachedRep.code() => Self::Done,
            // An earlier server's call had a notice, and came again without.
            Ok(Some(status)) if status == NfsStatus::SeqFalseRetry.code() && !has_notice => Self::Done,
            _ => Self::Fault,
        }
    }
}

/// The status of a reply's CB_SEQUENCE, or that of the compound if this has no result. None if the client has not
/// carried out the call.
fn sequence_status(reply: &[u8]) -> Result<Option<u32>, XdrError> {
    let Some(CallResults { of_compound, count, mut reader }) = results(reply)? else { return Ok(None) };
    if count == 0 {
        return Ok(Some(of_compound));
    }
    // The number of the operation, then its status.
    reader.u32()?;
    reader.u32().map(Some)
}

/// The results of a call that the client has carried out.
struct CallResults<'a> {
    of_compound: u32,
    count: u32,
    /// Before the first result.
    reader: Reader<'a>,
}

/// The results in a reply. None if the client has not carried out the call.
fn results(reply: &[u8]) -> Result<Option<CallResults<'_>>, XdrError> {
    const ACCEPTED: u32 = 0;
    const SUCCESS: u32 = 0;
    const VERIFIER_BYTES_MAX: usize = 400;
    const TAG_BYTES_MAX: usize = 1024;
    let mut reader = Reader::new(reply);
    // The number, the direction, whether the call was accepted, the verifier.
    let (_, _, accepted, _) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    reader.opaque(VERIFIER_BYTES_MAX)?;
    let (executed, of_compound) = (reader.u32()?, reader.u32()?);
    if accepted != ACCEPTED || executed != SUCCESS {
        return Ok(None);
    }
    reader.opaque(TAG_BYTES_MAX)?;
    let count = reader.u32()?;
    Ok(Some(CallResults { of_compound, count, reader }))
}

/// Whether the client knows the delegation that a call with CB_RECALL names. A reply from the client's cache of replies
/// counts as such.
fn is_recall_known(reply: &[u8]) -> bool {
    /// The result of CB_SEQUENCE behind its status: the session, its number and slot, two bounds of slots.
    const SEQUENCE_RESULT_BYTES: usize = 32;
    let recall_status = || {
        let CallResults { count, mut reader, .. } = results(reply).ok().flatten()?;
        let (_, status) = (reader.u32().ok()?, reader.u32().ok()?);
        if count < 2 || status != 0 {
            return None;
        }
        reader.fixed::<SEQUENCE_RESULT_BYTES>().ok()?;
        let (_, status) = (reader.u32().ok()?, reader.u32().ok()?);
        Some(status)
    };
    recall_status().is_none_or(|status| status == 0)
}

impl State {
    fn keep(&mut self) {
        if let Some((memory, item_id, party)) = &self.persisted
            && memory.check_quota(&self.item, *party, 4).is_ok()
        {
            memory.put(*item_id, &mut self.item, *party, &Record::BackChannel { sequenceid: self.sequenceid });
        }
    }
}

/// The body of CB_COMPOUND with CB_SEQUENCE and perhaps a notice, behind the number of the call.
fn call(state: &State, session: &SessionId, notice: Option<&ClientNotice>) -> Vec<u8> {
    const CALL: u32 = 0;
    const RPC_VERSION: u32 = 2;
    const CALLBACK_VERSION: u32 = 1;
    const CB_COMPOUND: u32 = 1;
    const AUTH_SYS: u32 = 1;
    const CB_SEQUENCE: u32 = 11;
    let mut writer = Writer::default();
    [CALL, RPC_VERSION, state.calling.program, CALLBACK_VERSION, CB_COMPOUND].iter().for_each(|&it| writer.u32(it));
    match state.calling.user {
        // A stamp, no name of the machine, the client's choice, no further groups.
        Some((uid, gid)) => [AUTH_SYS, 20, 0, 0, uid, gid, 0].iter().for_each(|&it| writer.u32(it)),
        None => [0, 0].iter().for_each(|&it| writer.u32(it)),
    }
    // No verifier; an empty tag, the minor version, the identification of 4.0, the number of operations.
    [0, 0, 0, state.minor, 0, 1 + u32::from(notice.is_some()), CB_SEQUENCE].iter().for_each(|&it| writer.u32(it));
    writer.raw(session);
    // The number, the slot, the highest slot; the client need not cache the reply, and the call refers to no call of
    // the client.
    [state.sequenceid, 0, 0, 0, 0].iter().for_each(|&it| writer.u32(it));
    if let Some(notice) = notice {
        write_notice(notice, &mut writer);
    }
    writer.into_bytes()
}

/// Writes what follows CB_SEQUENCE.
fn write_notice(notice: &ClientNotice, writer: &mut Writer) {
    const CB_RECALL: u32 = 4;
    const CB_NOTIFY_LOCK: u32 = 13;
    match notice {
        ClientNotice::Lock(notice) => {
            writer.u32(CB_NOTIFY_LOCK);
            writer.opaque(&notice.file);
            writer.u64(notice.clientid);
            writer.opaque(&notice.owner);
        }
        ClientNotice::Recall(recall) => {
            writer.u32(CB_RECALL);
            recall.write(writer);
        }
    }
}

/// Most notices that wait for the calls under way.
pub(super) const WAITING_MAX: usize = 64;

/// A lock that a client waits for may be free.
#[derive(Clone)]
pub(crate) struct LockNotice {
    pub(crate) file: Vec<u8>,
    pub(crate) clientid: u64,
    pub(crate) owner: Box<[u8]>,
    /// The wait that it may end. A later server finds the wait until the client has answered.
    pub(crate) wait: Arc<PersistedWait>,
}

/// A delegation that is recalled.
pub(crate) trait RecallCall: Send + Sync {
    /// Writes the arguments of CB_RECALL.
    fn write(&self, writer: &mut Writer);

    /// The client has answered. If `is_known`, it returns the delegation soon.
    fn answered(&self, is_known: bool);
}

/// The contents of a call.
#[derive(Clone)]
pub(crate) enum ClientNotice {
    Lock(LockNotice),
    Recall(Arc<dyn RecallCall>),
}

/// A session that carries notices.
pub(crate) trait NoticeCarrier: Send + Sync {
    /// Calls the client with its next notice, unless a call is under way or the session cannot call.
    fn carry_next(self: Arc<Self>);
}

#[derive(Default)]
struct QueuedNotices {
    waiting: VecDeque<LockNotice>,
    /// Each delegation that is recalled is there once at most.
    recalls: VecDeque<Arc<dyn RecallCall>>,
    /// The sessions that could call and found no notice, by number.
    idle: BTreeMap<u64, Weak<dyn NoticeCarrier>>,
    /// Number of sessions so far.
    sessions: u64,
}

/// The notices of one client.
#[derive(Default)]
pub(crate) struct LockNotices(Mutex<QueuedNotices>);

impl LockNotices {
    fn lock(&self) -> MutexGuard<'_, QueuedNotices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new session. A later one has a higher number.
    pub(crate) fn next_session(&self) -> u64 {
        let mut state = self.lock();
        state.sessions += 1;
        state.sessions
    }

    /// A session carries notices no more.
    pub(crate) fn remove(&self, session: u64) {
        self.lock().idle.remove(&session);
    }

    /// Notifies the client, after the notices before.
    pub(crate) fn notify(&self, notice: LockNotice) {
        let oldest = {
            let mut state = self.lock();
            state.waiting.push_back(notice);
            if state.waiting.len() > WAITING_MAX { state.waiting.pop_front() } else { None }
        };
        drop(oldest);
        self.send();
    }

    /// Recalls a delegation, after those before.
    pub(crate) fn recall(&self, recall: Arc<dyn RecallCall>) {
        self.lock().recalls.push_back(recall);
        self.send();
    }

    /// Takes a notice back that its session could not deliver. It comes before the others.
    pub(crate) fn give_back(&self, notice: ClientNotice) {
        let dropped = {
            let mut state = self.lock();
            let notice = match notice {
                ClientNotice::Lock(notice) => notice,
                ClientNotice::Recall(recall) => {
                    state.recalls.push_front(recall);
                    drop(state);
                    return self.send();
                }
            };
            if state.waiting.len() < WAITING_MAX {
                state.waiting.push_front(notice);
                None
            } else {
                Some(notice)
            }
        };
        drop(dropped);
        self.send();
    }

    /// The next notice, for a session that calls the client now. Without one the session is idle, and is asked for the
    /// next.
    pub(crate) fn take(&self, session: u64, carrier: Weak<dyn NoticeCarrier>) -> Option<ClientNotice> {
        let mut state = self.lock();
        // A recall has a time limit.
        let recall = state.recalls.pop_front().map(ClientNotice::Recall);
        let next = recall.or_else(|| state.waiting.pop_front().map(ClientNotice::Lock));
        if next.is_none() {
            state.idle.insert(session, carrier);
        }
        next
    }

    /// Has idle sessions carry the notices, the newest session first.
    fn send(&self) {
        while let Some(carrier) = self.next_carrier() {
            carrier.upgrade().into_iter().for_each(NoticeCarrier::carry_next);
        }
    }

    /// An idle session, as long as a notice waits.
    fn next_carrier(&self) -> Option<Weak<dyn NoticeCarrier>> {
        let mut state = self.lock();
        let has_none = state.waiting.is_empty() && state.recalls.is_empty();
        if has_none { None } else { state.idle.pop_last().map(|(_, carrier)| carrier) }
    }

    /// Number of recalls that wait.
    #[cfg(test)]
    pub(crate) fn recalls(&self) -> usize {
        self.lock().recalls.len()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

#[cfg(test)]
mod tests;
