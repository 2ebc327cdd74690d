//! The threads of a session that rest.
//!
//! Owns: the number of threads that come back to the device, the threads that rest, the permission to block.
//! Does not own: messages (`session`), the host's calls (`afflux_linux_device::in_place`).
//! Invariants: at least one thread waits at the device, or comes back to it without a call of the host. The last such
//! thread may not block. A thread that ends lets all others come back.
//!
//! The kernel wakes the threads that wait for messages by turns. So a lone caller finds another thread each time, with
//! another buffer, and on another processor. One thread alone serves such a caller at less cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use afflux_linux_device::in_place::Leave;

/// A thread looks after this many of its messages whether others wait. Programs repeat themselves after other numbers.
const MESSAGES_PER_LOOK: u32 = 5;

/// The looks that a thread remembers.
const LOOKS: u32 = u16::BITS;

/// A thread comes back if this many of them found other messages.
const CROWDED: u32 = LOOKS / 2;

/// A thread may rest if no more of them did. The kernel sends some messages, such as RELEASE, beside those of a caller.
const LONELY: u32 = LOOKS / 4;

/// The threads of a session, by their occupation.
pub(super) struct SessionThreads(Mutex<Occupations>);

#[derive(Default)]
struct Occupations {
    /// Threads that wait at the device, or come back to it without a call of the host.
    present: usize,
    resting: Vec<Thread>,
    /// Permissions to block since the start.
    permissions: u64,
}

/// The memory of one thread about its last messages.
#[derive(Default)]
pub(super) struct MessageHistory {
    messages: u32,
    looks: u32,
    /// Whether other messages waited, by look; the last one is the lowest bit.
    others: u16,
    /// Looks in a row without a permission to block since the look before.
    calm: u32,
    /// [`Occupations::permissions`] at the last look.
    permissions: u64,
}

impl MessageHistory {
    pub(super) fn count_message(&mut self) {
        self.messages = (self.messages + 1) % MESSAGES_PER_LOOK;
    }

    /// Whether the thread looks for others after the message that was counted last.
    pub(super) fn is_time_to_look(&self) -> bool {
        self.messages == 0
    }

    fn note(&mut self, others_wait: bool, permissions: u64) {
        self.looks += 1;
        self.others = self.others << 1 | u16::from(others_wait);
        self.calm = if permissions == self.permissions { self.calm + 1 } else { 0 };
        self.permissions = permissions;
    }

    fn is_crowded(&self) -> bool {
        self.others.count_ones() >= CROWDED
    }

    /// Whether a thread may rest while so many are present. Calls that block need a second one.
    fn may_rest(&self, present: usize) -> bool {
        let needed = if self.calm >= LOOKS { 1 } else { 2 };
        self.looks >= LOOKS && self.others.count_ones() <= LONELY && present > needed
    }
}

impl SessionThreads {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    fn lock(&self) -> MutexGuard<'_, Occupations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread, before its start.
    pub(super) fn join(self: &Arc<Self>) -> SessionThread {
        self.lock().present += 1;
        SessionThread(Arc::clone(self))
    }
}

impl Leave for SessionThreads {
    /// A thread that is not the last one for the device may block. A resting thread comes back first if it is.
    fn try_permit(&self) -> bool {
        let mut threads = self.lock();
        if threads.present < 2 && !threads.try_call_back() {
            return false;
        }
        threads.present -= 1;
        threads.permissions += 1;
        true
    }

    fn end(&self) {
        self.lock().present += 1;
    }
}

impl Occupations {
    /// Sends a resting thread to the device. False if there is none.
    fn try_call_back(&mut self) -> bool {
        let Some(thread) = self.resting.pop() else { return false };
        self.present += 1;
        thread.unpark();
        true
    }
}

/// A thread of a session. Its drop is the end of the thread.
pub(super) struct SessionThread(Arc<SessionThreads>);

impl SessionThread {
    /// Called by a thread that holds a message, with whether others wait. If they often do, a thread comes back for
    /// them.
    pub(super) fn note_look(&self, history: &mut MessageHistory, others_wait: bool) {
        let mut threads = self.0.lock();
        history.note(others_wait, threads.permissions);
        if history.is_crowded() && threads.try_call_back() {
            *history = MessageHistory { permissions: threads.permissions, ..MessageHistory::default() };
        }
    }

    /// Whether this thread may rest after its message.
    pub(super) fn may_rest(&self, history: &MessageHistory) -> bool {
        history.may_rest(self.0.lock().present)
    }

    /// Waits until the thread is called back. Returns at once if no other thread is there for the device.
    pub(super) fn rest(&self, history: &mut MessageHistory) {
        *history = MessageHistory::default();
        let me = thread::current();
        let mut threads = self.0.lock();
        if threads.present < 2 {
            return;
        }
        threads.present -= 1;
        threads.resting.push(me.clone());
        while threads.resting.iter().any(|thread| thread.id() == me.id()) {
            drop(threads);
            thread::park();
            threads = self.0.lock();
        }
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        let mut threads = self.0.lock();
        threads.present -= 1;
        while threads.try_call_back() {}
    }
}

#[cfg(test)]
mod tests;
