//! The part of a reactor that other threads use.
//!
//! Owns: the mail of other threads, and the doorbell that ends the reactor's wait for it.
//! Does not own: tasks, timers, operations; the reactor's own thread carries out the mail.
//! Invariants: the reactor sees mail sent before its last look before it waits again. A notification costs a system
//! call only while the reactor sleeps. After `close` it takes no more mail.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;

use super::Reactor;
use crate::foreign_wakers::{DueWake, WakeThread};

/// The key of the future of `block_on`, which is in no table.
pub(super) const ROOT: usize = usize::MAX;

/// Something to do on a reactor's thread.
pub(crate) type Errand = Box<dyn FnOnce(&Rc<Reactor>) + Send>;

/// A message of another thread to a reactor.
pub(crate) enum Mail {
    /// Poll a task.
    Wake(Arc<TaskWake>),
    /// Run a closure on the reactor's thread.
    Run(Errand),
    /// Wake a foreign task.
    Make(DueWake),
}

/// The reactor as other threads see it.
pub struct Remote {
    mailbox: Mutex<Mailbox>,
    has_mail: AtomicBool,
    asleep: AtomicBool,
    /// Written to end a wait in the kernel; without it the thread parks.
    pub(super) doorbell: OnceLock<OwnedFd>,
    pub(super) thread: OnceLock<Thread>,
}

#[derive(Default)]
struct Mailbox {
    mail: Vec<Mail>,
    closed: bool,
}

impl Remote {
    /// The `Remote` of a reactor that has not begun yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mutex::default(),
            has_mail: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            doorbell: OnceLock::new(),
            thread: OnceLock::new(),
        })
    }

    /// Has the reactor do this on its thread. A reactor that has ended drops it.
    pub fn run(&self, errand: impl FnOnce(&Rc<Reactor>) + Send + 'static) {
        drop(self.send(Mail::Run(Box::new(errand))));
    }

    /// Leaves `mail`, or gives it back if the reactor has ended.
    pub(crate) fn send(&self, mail: Mail) -> Result<(), Mail> {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        if mailbox.closed {
            return Err(mail);
        }
        mailbox.mail.push(mail);
        drop(mailbox);
        self.has_mail.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.ring_doorbell();
        }
        Ok(())
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
    pub(super) fn take(&self, mail: &mut Vec<Mail>) {
        if self.has_mail.load(Ordering::Relaxed) && self.has_mail.swap(false, Ordering::SeqCst) {
            let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut mailbox.mail, mail);
        }
    }

    /// Takes no more mail; returns the mail that came before.
    pub(super) fn close(&self) -> Vec<Mail> {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        mailbox.closed = true;
        std::mem::take(&mut mailbox.mail)
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

impl WakeThread for Remote {
    fn make(&self, due: DueWake) -> Result<(), DueWake> {
        match self.send(Mail::Make(due)) {
            Err(Mail::Make(due)) => Err(due),
            _ => Ok(()),
        }
    }
}

/// A task's waker: its reactor and its key there.
pub(crate) struct TaskWake {
    pub(super) key: usize,
    remote: Arc<Remote>,
    /// Whether its poll is scheduled already.
    pub(super) scheduled: AtomicBool,
}

impl TaskWake {
    pub(super) fn new(key: usize, remote: &Arc<Remote>) -> Arc<Self> {
        Arc::new(Self { key, remote: Arc::clone(remote), scheduled: AtomicBool::new(false) })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        // Acquire and release: the poll that follows sees everything that the waker did before.
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut wake = Some(self);
        Reactor::with_current(|reactor| {
            if let Some(own) = wake.take_if(|wake| Arc::ptr_eq(&wake.remote, &reactor.remote)) {
                reactor.woken(own);
            }
        });
        if let Some(wake) = wake {
            let remote = Arc::clone(&wake.remote);
            // An ended reactor has dropped its tasks, so no task is left to wake.
            let _ = remote.send(Mail::Wake(wake));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.scheduled.load(Ordering::Acquire) {
            Arc::clone(self).wake();
        }
    }
}
