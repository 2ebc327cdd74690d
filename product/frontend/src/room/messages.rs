//! The room for messages that wait.
//!
//! Owns: the bound on the bytes of all, the calls whose message has no room.
//! Does not own: the messages, the choice of those that count (front ends); the part of each user (`shares`).
//! Invariants: a call without its message has its turn after the end of a message, and at once if no message is left. A
//! call is woken outside the lock. Calls that were given up take bounded memory.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot::{self, Receiver, Sender};

use super::shares::FairShares;

/// Ends when a call without room may try again.
pub type RoomTurn = Receiver<()>;

/// The messages of calls that wait.
pub struct MessageRoom(Mutex<State>);

struct State {
    shares: FairShares,
    /// Calls without their message, the oldest first.
    put_off: VecDeque<Sender<()>>,
}

impl MessageRoom {
    /// No messages yet, and never many more bytes than these.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let shares = FairShares::new(bytes_max);
        Arc::new(Self(Mutex::new(State { shares, put_off: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user's message of so many bytes until the drop of the result. Without room for it, the error ends when
    /// the message may be tried again. `is_bound` tells whether other users need room, too.
    pub fn hold(self: &Arc<Self>, user: u32, is_bound: bool, bytes: usize) -> Result<HeldMessage, RoomTurn> {
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
        state.shares.take(user, bytes);
        Ok(HeldMessage { room: Arc::clone(self), user, bytes })
    }

    /// Bytes that are counted.
    pub fn bytes(&self) -> usize {
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
pub struct HeldMessage {
    room: Arc<MessageRoom>,
    user: u32,
    bytes: usize,
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        let next = {
            let mut state = self.room.lock();
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
