//! Calls of this server over a client's connection.
//!
//! Owns: their numbers, the records to send, which answer belongs to which call.
//! Does not own: their contents (`v4::back_channel`), the connection.
//! Invariants: at most [`AWAITED_MAX`] calls await an answer; an answer to none of them counts as stray. A call is sent
//! by its connection's own task, which is woken for it. The asker judges each answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use crate::wire::record;

/// Most calls of a connection that await an answer. The oldest is forgotten.
const AWAITED_MAX: usize = 256;

/// Time after which a call goes again to a client that has put it off. A client is busy with its session for some round
/// trips.
pub(crate) const PAUSE_NS: u64 = 100_000_000;

/// The receiver of an answer.
pub(crate) trait Asker: Send + Sync {
    /// Takes the client's reply to the call with this mark. False if the client wants the call once more after
    /// [`PAUSE_NS`]: the connection's task then calls [`Asker::call_again`].
    fn try_settle(self: Arc<Self>, mark: u32, reply: &[u8]) -> bool;

    /// Sends the call again.
    fn call_again(self: Arc<Self>);
}

/// The consequence of an answer.
pub(crate) enum Answered {
    /// No call awaits it.
    Stray,
    /// Nothing more.
    Settled,
    /// The asker sends the call again after [`PAUSE_NS`].
    Postponed(Weak<dyn Asker>),
}

#[derive(Default)]
struct State {
    last: u32,
    records: Vec<Vec<u8>>,
    awaited: BTreeMap<u32, (Weak<dyn Asker>, u32)>,
}

/// The calls of one connection.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    waker: AtomicWaker,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a call, from behind its number on. Its answer goes to the asker with this mark.
    pub(crate) fn send(&self, body: &[u8], mark: u32, asker: Weak<dyn Asker>) {
        let mut state = self.lock();
        state.last = state.last.wrapping_add(1);
        let number = state.last;
        let len = body.len() + 4;
        state.records.push([&record::mark(len).to_be_bytes()[..], &number.to_be_bytes(), body].concat());
        state.awaited.insert(number, (asker, mark));
        if state.awaited.len() > AWAITED_MAX {
            state.awaited.pop_first();
        }
        drop(state);
        self.waker.wake();
    }

    /// The records to send now. The task is woken for later ones.
    pub(crate) fn take(&self, waker: &Waker) -> Vec<Vec<u8>> {
        self.waker.register(waker);
        std::mem::take(&mut self.lock().records)
    }

    /// Passes an answer, from its number on, to the asker.
    pub(crate) fn answer(&self, number: u32, reply: &[u8]) -> Answered {
        let Some((asker, mark)) = self.lock().awaited.remove(&number) else { return Answered::Stray };
        let is_settled = asker.upgrade().is_none_or(|asker| asker.try_settle(mark, reply));
        if is_settled { Answered::Settled } else { Answered::Postponed(asker) }
    }
}
