//! The calls of a session's server to its client.
//!
//! Owns: their order, the number of the single slot, the notices that wait for it, the bytes of a call.
//! Does not own: the connection that carries them (`wire::outbox`), the reason for a call.
//! Invariants: one call is under way at a time, and it is sent again with its number: over a new connection, and to a
//! client that was busy. At most [`WAITING_MAX`] notices wait, also for a connection; the oldest goes. A client that
//! never answers holds up nothing else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use afflux_frontend::{KeptItem, Party};
use afflux_volume::LockWaker;

use super::state::channel_attrs::{CallbackSecurity, SessionId};
use super::state::kept::{Memory, Record};
use super::state::kept_waits::KeptWait;
use crate::status::NfsStatus;
use crate::wire::outbox::{Asker, Outbox};
use crate::wire::xdr::{Reader, Writer, XdrError};

/// Most notices that wait for the one under way.
const WAITING_MAX: usize = 64;

/// A lock that a client waits for may be free.
#[derive(Clone)]
pub(crate) struct LockNotice {
    pub(crate) file: Vec<u8>,
    pub(crate) client: u64,
    pub(crate) owner: Box<[u8]>,
    /// The wait that it may end. A later server finds the wait until the client has answered.
    pub(crate) wait: Arc<KeptWait>,
}

/// A call that the client has not answered.
struct UnderWay {
    body: Vec<u8>,
    _wait: Option<Arc<KeptWait>>,
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
    /// The client has put the call under way off, and a timer runs.
    is_put_off: bool,
    waiting: VecDeque<LockNotice>,
    /// Where the number of the last call is kept for a later server.
    kept: Option<(Memory, u32, Party)>,
    item: KeptItem,
}

/// A session's way back to its client.
pub(crate) struct BackChannel {
    /// The session's number.
    pub(crate) session: SessionId,
    /// The client has asked for a back channel.
    is_wanted: AtomicBool,
    state: Mutex<State>,
}

/// Wakes by telling a client.
pub(crate) struct LockCall {
    pub(crate) back: Arc<BackChannel>,
    /// The place of the open that the owner waits with.
    pub(crate) open: u32,
    pub(crate) notice: LockNotice,
}

impl LockWaker for LockCall {
    fn wake(&self) {
        self.back.notify(self.notice.clone());
    }

    fn open(&self) -> Option<u64> {
        Some(self.open.into())
    }
}

impl BackChannel {
    /// The session with this number is not called yet.
    pub(crate) fn new(session: SessionId) -> Arc<Self> {
        Arc::new(Self { session, is_wanted: AtomicBool::new(false), state: Mutex::default() })
    }

    /// An earlier server has called the client so often. The client may not know the last call: it comes again, without
    /// a notice.
    pub(crate) fn left(
        session: SessionId,
        (calling, minor, is_wanted): (CallbackSecurity, u32, bool),
        (sequenceid, item): (u32, KeptItem),
    ) -> Arc<Self> {
        let mut state = State { calling, minor, sequenceid, item, ..State::default() };
        state.under_way = (sequenceid > 0).then(|| UnderWay { body: call(&state, &session, None), _wait: None });
        Arc::new(Self { session, is_wanted: AtomicBool::new(is_wanted), state: Mutex::new(state) })
    }

    /// How the client wants to be called, and whether it does.
    pub(crate) fn manner(&self) -> (CallbackSecurity, u32, bool) {
        let state = self.lock();
        (state.calling, state.minor, self.is_wanted.load(Ordering::Relaxed))
    }

    /// Keeps the number of each further call for a later server, as a record with this number.
    pub(crate) fn keep_sequence(&self, memory: &Memory, number: u32, party: Party) {
        self.lock().kept = Some((Memory::clone(memory), number, party));
    }

    /// A later server need not know.
    pub(crate) fn forget(&self, memory: &Memory, party: Party) {
        let mut state = self.lock();
        state.kept = None;
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

    /// Whether a call would find a connection.
    pub(crate) fn is_up(&self) -> bool {
        self.lock().outbox.strong_count() > 0
    }

    /// Whether the client has asked for one: what it is told waits for a connection.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Whether the client has asked for one whose connection is gone.
    pub(crate) fn is_down(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && !self.is_up()
    }

    /// Tells the client, after the notices before.
    fn notify(self: &Arc<Self>, notice: LockNotice) {
        let mut state = self.lock();
        if state.waiting.len() >= WAITING_MAX {
            state.waiting.pop_front();
        }
        state.waiting.push_back(notice);
        self.send_next(&mut state);
    }

    fn send_next(self: &Arc<Self>, state: &mut State) {
        if state.under_way.is_some() {
            return;
        }
        // A notice stays until there is a connection.
        let Some(outbox) = state.outbox.upgrade() else { return };
        let Some(notice) = state.waiting.pop_front() else { return };
        state.sequenceid = state.sequenceid.wrapping_add(1);
        state.keep();
        let body = call(state, &self.session, Some(&notice));
        outbox.send(&body, state.sequenceid, self.asker());
        state.under_way = Some(UnderWay { body, _wait: Some(notice.wait) });
    }
}

impl Asker for BackChannel {
    fn try_settle(self: Arc<Self>, mark: u32, reply: &[u8]) -> bool {
        let mut state = self.lock();
        if state.sequenceid != mark || state.under_way.is_none() {
            return true;
        }
        if is_put_off(reply) {
            // One timer is enough.
            return std::mem::replace(&mut state.is_put_off, true);
        }
        state.under_way = None;
        self.send_next(&mut state);
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

/// Whether a client has refused a call for now, and has not counted it: it is busy with its session. Linux's client is
/// so from before its BIND_CONN_TO_SESSION until after the reply, and the first call comes in between.
fn is_put_off(reply: &[u8]) -> bool {
    const ACCEPTED: u32 = 0;
    const SUCCESS: u32 = 0;
    const VERIFIER_BYTES_MAX: usize = 400;
    let status = |reader: &mut Reader<'_>| -> Result<Option<u32>, XdrError> {
        // The number, the direction, whether the call was accepted, the verifier.
        let (_, _, accepted, _) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        reader.opaque(VERIFIER_BYTES_MAX)?;
        let (executed, status) = (reader.u32()?, reader.u32()?);
        Ok((accepted == ACCEPTED && executed == SUCCESS).then_some(status))
    };
    status(&mut Reader::new(reply)) == Ok(Some(NfsStatus::Delay.code()))
}

impl State {
    fn keep(&mut self) {
        if let Some((memory, number, party)) = &self.kept
            && memory.check_room(&self.item, *party, 4).is_ok()
        {
            memory.put(*number, &mut self.item, *party, &Record::BackChannel { sequenceid: self.sequenceid });
        }
    }
}

/// The body of CB_COMPOUND with CB_SEQUENCE and CB_NOTIFY_LOCK, behind the number of the call.
fn call(state: &State, session: &SessionId, notice: Option<&LockNotice>) -> Vec<u8> {
    const CALL: u32 = 0;
    const RPC_VERSION: u32 = 2;
    const CALLBACK_VERSION: u32 = 1;
    const CB_COMPOUND: u32 = 1;
    const AUTH_SYS: u32 = 1;
    const CB_SEQUENCE: u32 = 11;
    const CB_NOTIFY_LOCK: u32 = 13;
    let mut writer = Writer::default();
    [CALL, RPC_VERSION, state.calling.program, CALLBACK_VERSION, CB_COMPOUND].iter().for_each(|&it| writer.u32(it));
    if state.calling.names_user {
        // A stamp, no name of the machine, root, its group, no further groups.
        [AUTH_SYS, 20, 0, 0, 0, 0, 0].iter().for_each(|&it| writer.u32(it));
    } else {
        [0, 0].iter().for_each(|&it| writer.u32(it));
    }
    // No verifier; an empty tag, the minor version, the identification of 4.0, the number of operations.
    [0, 0, 0, state.minor, 0, 1 + u32::from(notice.is_some()), CB_SEQUENCE].iter().for_each(|&it| writer.u32(it));
    writer.raw(session);
    // The number, the slot, the highest slot; not kept, and after no call of the client.
    [state.sequenceid, 0, 0, 0, 0].iter().for_each(|&it| writer.u32(it));
    if let Some(notice) = notice {
        writer.u32(CB_NOTIFY_LOCK);
        writer.opaque(&notice.file);
        writer.u64(notice.client);
        writer.opaque(&notice.owner);
    }
    writer.into_bytes()
}

#[cfg(test)]
mod tests;
