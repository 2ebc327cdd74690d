//! Mail of other threads for a thread that may sleep.
//!
//! Owns: the mail, and the doorbell that ends the thread's wait for it.
//! Does not own: the meaning of the mail; the receiving thread carries it out (`reactor`).
//! Invariants: the thread sees mail sent before its last check before it waits again. A notification costs a system
//! call only while the thread sleeps. After `close` the mailbox takes no more mail.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use rustix::event::{EventfdFlags, eventfd};

pub(super) struct Mailbox<M> {
    inside: Mutex<Inside<M>>,
    has_mail: AtomicBool,
    asleep: AtomicBool,
    /// Written to end a wait in the kernel; without it the thread parks.
    pub(super) doorbell: OnceLock<OwnedFd>,
    pub(super) thread: OnceLock<Thread>,
}

struct Inside<M> {
    mail: Vec<M>,
    closed: bool,
}

impl<M> Mailbox<M> {
    /// The mailbox of a thread that has not begun yet.
    pub(super) fn new() -> Self {
        Self {
            inside: Mutex::new(Inside { mail: Vec::new(), closed: false }),
            has_mail: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            doorbell: OnceLock::new(),
            thread: OnceLock::new(),
        }
    }

    /// Leaves `mail`, or gives it back if the mailbox is closed.
    pub(super) fn send(&self, mail: M) -> Result<(), M> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.closed {
            return Err(mail);
        }
        inside.mail.push(mail);
        drop(inside);
        self.has_mail.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.ring_doorbell();
        }
        Ok(())
    }

    /// The doorbell, made when it is first needed.
    pub(super) fn make_doorbell(&self) -> std::io::Result<&OwnedFd> {
        if let Some(doorbell) = self.doorbell.get() {
            return Ok(doorbell);
        }
        // Blocking on purpose: only then does a ring wait for it.
        let made = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(self.doorbell.get_or_init(|| made))
    }

    fn ring_doorbell(&self) {
        if let Some(doorbell) = self.doorbell.get() {
            // The write fails only if the count would overflow; then the doorbell rings already.
            let _ = rustix::io::write(doorbell, &1_u64.to_ne_bytes());
        } else if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Swaps the mail into `mail`, which must be empty.
    pub(super) fn take(&self, mail: &mut Vec<M>) {
        if self.has_mail.load(Ordering::Relaxed) && self.has_mail.swap(false, Ordering::SeqCst) {
            let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut inside.mail, mail);
        }
    }

    /// Takes no more mail; returns the mail that came before.
    pub(super) fn close(&self) -> Vec<M> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.closed = true;
        std::mem::take(&mut inside.mail)
    }

    #[cfg(test)]
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Announces that the thread is about to wait. False if mail came first: then the thread must not wait.
    pub(super) fn try_prepare_to_wait(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let may_wait = !self.has_mail.load(Ordering::SeqCst);
        if !may_wait {
            self.asleep.store(false, Ordering::SeqCst);
        }
        may_wait
    }

    pub(super) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }
}
