//! The notices of free locks to one client that no call carries yet.
//!
//! Owns: their order, the sessions that may carry them.
//! Does not own: the calls (`back_channel`), the waits (the volume).
//! Invariants: a notice goes over any session of its client whose back channel works. Without one it waits for the
//! next, also for that of a later session. A call that a session could not bring to its end gives its notice back. At
//! most [`WAITING_MAX`] notices wait; the oldest goes. The lock is a leaf.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::state::channel_attrs::SessionId;
use super::state::kept_waits::KeptWait;

/// Most notices that wait for the calls under way.
pub(super) const WAITING_MAX: usize = 64;

/// A lock that a client waits for may be free.
#[derive(Clone)]
pub(crate) struct LockNotice {
    pub(crate) file: Vec<u8>,
    pub(crate) client: u64,
    pub(crate) owner: Box<[u8]>,
    /// The wait that it may end. A later server finds the wait until the client has answered.
    pub(crate) wait: Arc<KeptWait>,
}

/// A session that carries notices.
pub(crate) trait NoticeCarrier: Send + Sync {
    /// Calls the client with its next notice, unless a call is under way or the session cannot call.
    fn carry_next(self: Arc<Self>);
}

#[derive(Default)]
struct State {
    waiting: VecDeque<LockNotice>,
    /// The sessions, the oldest first.
    carriers: Vec<(SessionId, Weak<dyn NoticeCarrier>)>,
}

/// The notices of one client.
#[derive(Default)]
pub(crate) struct LockNotices(Mutex<State>);

impl LockNotices {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session carries notices from now on.
    pub(crate) fn add(&self, session: SessionId, carrier: Weak<dyn NoticeCarrier>) {
        self.lock().carriers.push((session, carrier));
    }

    /// A session carries notices no more.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.lock().carriers.retain(|(id, _)| id != session);
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

    /// The next notice, for a session that calls the client now.
    pub(crate) fn take(&self) -> Option<LockNotice> {
        self.lock().waiting.pop_front()
    }

    /// Has sessions carry the notices, the newest session first.
    fn send(&self) {
        let carriers = self.lock().carriers.clone();
        for carrier in carriers.iter().rev().filter_map(|(_, carrier)| carrier.upgrade()) {
            carrier.carry_next();
        }
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}
