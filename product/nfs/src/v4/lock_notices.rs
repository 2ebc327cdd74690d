//! The notices of free locks to one client that no call carries yet.
//!
//! Owns: their order, the sessions that may carry the next one.
//! Does not own: the calls (`back_channel`), the waits (the volume).
//! Invariants: a notice goes over any session of its client whose back channel works. Without one the notice waits for
//! the next, also for that of a later session. A call that a session could not bring to an end gives the notice back.
//! At most [`WAITING_MAX`] notices wait; the oldest goes. No notice waits while a session is idle. A notice asks idle
//! sessions until one has taken the notice. A session that cannot call is asked once (`lock_notices/tests.rs`). The
//! lock is a leaf.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::state::persisted_waits::PersistedWait;

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

/// A session that carries notices.
pub(crate) trait NoticeCarrier: Send + Sync {
    /// Calls the client with its next notice, unless a call is under way or the session cannot call.
    fn carry_next(self: Arc<Self>);
}

#[derive(Default)]
struct State {
    waiting: VecDeque<LockNotice>,
    /// The sessions that could call and found no notice, by number.
    idle: BTreeMap<u64, Weak<dyn NoticeCarrier>>,
    /// Number of sessions so far.
    sessions: u64,
}

/// The notices of one client.
#[derive(Default)]
pub(crate) struct LockNotices(Mutex<State>);

impl LockNotices {
    fn lock(&self) -> MutexGuard<'_, State> {
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

    /// Tells the client, after the notices before.
    pub(crate) fn notify(&self, notice: LockNotice) {
        let oldest = {
            let mut state = self.lock();
            state.waiting.push_back(notice);
            if state.waiting.len() > WAITING_MAX { state.waiting.pop_front() } else { None }
        };
        drop(oldest);
        self.send();
    }

    /// Takes a notice back that its session could not deliver. It comes before the others.
    pub(crate) fn give_back(&self, notice: LockNotice) {
        let dropped = {
            let mut state = self.lock();
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
    pub(crate) fn take(&self, session: u64, carrier: Weak<dyn NoticeCarrier>) -> Option<LockNotice> {
        let mut state = self.lock();
        let next = state.waiting.pop_front();
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
        if state.waiting.is_empty() { None } else { state.idle.pop_last().map(|(_, carrier)| carrier) }
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

#[cfg(test)]
mod tests;
