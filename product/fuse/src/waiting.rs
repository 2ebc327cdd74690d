//! Messages that wait.
//!
//! Owns: the bound on the bytes of all, the part of each user, the calls whose message has no room.
//! Does not own: the messages (the server), interrupts of their calls (`interrupts`).
//! Invariants: messages of the kernel's own are not counted, since INIT bounds their number. Short messages are not
//! either: they are as small as the rest of a call. A call without its message has its turn after the end of a message,
//! and at once if no message is left. A call is woken outside the lock. Calls that were given up take bounded memory.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::MESSAGE_COPIED_MAX;
use futures_channel::oneshot::{self, Receiver, Sender};

use crate::limits::{MESSAGE_BYTES_MAX, WAITING_BYTES_MIN};
use crate::shares::Shares;

/// Messages up to this length are not counted.
pub(crate) const SHORT_BYTES_MAX: usize = 8 << 10;

pub(crate) struct Waiting(Mutex<State>);

struct State {
    shares: Shares,
    /// Calls without their message, the oldest first.
    put_off: VecDeque<Sender<()>>,
}

impl Waiting {
    /// No messages yet. They may hold as much as the cache has.
    pub(crate) fn new(cache_bytes: usize) -> Arc<Self> {
        let shares = Shares::new(cache_bytes.max(WAITING_BYTES_MIN));
        Arc::new(Self(Mutex::new(State { shares, put_off: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user's message of so many bytes until the drop of the result. Without room for it, the error ends when
    /// the message may be tried again. `is_bound` tells whether other users need room, too.
    pub(crate) fn hold(self: &Arc<Self>, user: u32, is_bound: bool, len: usize) -> Result<Holding, Receiver<()>> {
        let state = &mut *self.lock();
        let has_room = if is_bound { state.shares.has_room(user) } else { state.shares.left() > 0 };
        if !has_room {
            let (turn, told) = oneshot::channel();
            if state.put_off.len() == state.put_off.capacity() {
                state.put_off.retain(|turn| !turn.is_canceled());
            }
            state.put_off.push_back(turn);
            return Err(told);
        }
        let bytes = if len <= MESSAGE_COPIED_MAX { len } else { MESSAGE_BYTES_MAX };
        state.shares.take(user, bytes);
        Ok(Holding { waiting: Arc::clone(self), user, bytes })
    }

    /// Bytes that are counted.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().shares.taken()
    }
}

impl State {
    /// The calls that have their turn after the end of a message: the oldest one that still waits, or all of them if no
    /// message is left.
    fn next(&mut self) -> VecDeque<Sender<()>> {
        if self.shares.taken() == 0 {
            return mem::take(&mut self.put_off);
        }
        while let Some(turn) = self.put_off.pop_front() {
            if !turn.is_canceled() {
                return VecDeque::from([turn]);
            }
        }
        VecDeque::new()
    }
}

/// A message that is counted.
pub(crate) struct Holding {
    waiting: Arc<Waiting>,
    user: u32,
    bytes: usize,
}

impl Drop for Holding {
    fn drop(&mut self) {
        let next = {
            let mut state = self.waiting.lock();
            state.shares.give_back(self.user, self.bytes);
            state.next()
        };
        for turn in next {
            // An error: the call was given up meanwhile.
            let _ = turn.send(());
        }
    }
}

#[cfg(test)]
mod tests;
