//! The quota for messages that wait.
//!
//! Owns: the bound on the bytes of all, the calls whose message has no quota.
//! Does not own: the messages, the choice of those that count (front ends); the part of each user (`quotas`).
//! Invariants: a call without its message has its turn after the end of a message, and at once if no message is left. A
//! call is woken outside the lock. Calls that were given up take bounded memory.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot::{self, Receiver, Sender};

use super::fair_quotas::FairQuotas;

/// Ends when a call without quota may try again.
pub type QuotaFreed = Receiver<()>;

/// The messages of calls that wait.
pub struct MessageQuota(Mutex<State>);

struct State {
    quotas: FairQuotas,
    /// Calls without their message, the oldest first.
    put_off: VecDeque<Sender<()>>,
}

impl MessageQuota {
    /// No messages yet, and never many more bytes than these.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        let quotas = FairQuotas::new(bytes_max);
        Arc::new(Self(Mutex::new(State { quotas, put_off: VecDeque::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a user's message of so many bytes until the drop of the result. Without quota for it, the error ends when
    /// the message may be tried again. `is_bound` tells whether other users need quota, too.
    pub fn hold(self: &Arc<Self>, user: u32, is_bound: bool, bytes: usize) -> Result<HeldMessage, QuotaFreed> {
        let state = &mut *self.lock();
        let may_take = if is_bound { state.quotas.may_take(user) } else { state.quotas.available() > 0 };
        if !may_take {
            let (freed, told) = oneshot::channel();
            if state.put_off.len() == state.put_off.capacity() {
                state.put_off.retain(|freed| !freed.is_canceled());
            }
            state.put_off.push_back(freed);
            return Err(told);
        }
        state.quotas.take(user, bytes);
        Ok(HeldMessage { quota: Arc::clone(self), user, bytes })
    }

    /// Bytes that are counted.
    pub fn bytes(&self) -> usize {
        self.lock().quotas.taken()
    }
}

impl State {
    /// The calls that have their turn after the end of a message: the oldest one that still waits, or all of them if no
    /// message is left.
    fn next(&mut self) -> VecDeque<Sender<()>> {
        if self.quotas.taken() == 0 {
            return mem::take(&mut self.put_off);
        }
        while let Some(freed) = self.put_off.pop_front() {
            if !freed.is_canceled() {
                return VecDeque::from([freed]);
            }
        }
        VecDeque::new()
    }
}

/// A message that is counted.
pub struct HeldMessage {
    quota: Arc<MessageQuota>,
    user: u32,
    bytes: usize,
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        let next = {
            let mut state = self.quota.lock();
            state.quotas.give_back(self.user, self.bytes);
            state.next()
        };
        for freed in next {
            // An error: the call was given up meanwhile.
            let _ = freed.send(());
        }
    }
}

#[cfg(test)]
mod tests;
