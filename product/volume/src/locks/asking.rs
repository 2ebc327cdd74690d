//! Locks that programs of the host see: questions to the host, their answers, unlocks that the host has to see.
//!
//! Owns: the end of a question: its lock stays, or goes back; the wait for the host.
//! Does not own: the first step of a lock (`table`), the calls to the host (`of_file`, `host`).
//! Invariants: nobody calls the host here. A question that is given up leaves no lock in the table, and none on the
//! host after the call that is underway.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use afflux_engine::Nanos;

use super::holders::{HostQuestion, LockRefusal};
use super::host::OnHost;
use super::of_file::Wakers;
use super::owner::{Lock, LockOwner};
use super::queue::LockWaker;
use super::table::Locks;
use crate::lock::lock;
use crate::locks::host::HostLocks;

impl Locks {
    /// From now on programs of the host see the locks: front ends ask for a file's locks there before they lock.
    pub fn show_on_host(&self) {
        self.is_on_host.store(true, Ordering::Relaxed);
    }

    /// Whether programs of the host see the locks.
    pub fn are_on_host(&self) -> bool {
        self.is_on_host.load(Ordering::Relaxed)
    }

    /// A file's locks on the host, once they are made.
    pub(crate) fn host_of(&self, file: u64) -> Option<Arc<dyn HostLocks>> {
        lock(&self.shared.table).files.get(&file)?.host.as_ref().map(|it| Arc::clone(it.get()))
    }

    /// Begins a file's locks on the host. Returns them, or the earlier ones if they were made before.
    pub(crate) fn host_begins(&self, file: u64, host: Arc<dyn HostLocks>) -> Arc<dyn HostLocks> {
        let mut table = lock(&self.shared.table);
        let kept = table.with(file, |_, of_file| {
            Arc::clone(of_file.host.get_or_insert_with(|| OnHost::begin(Arc::clone(&host), &of_file.ranges)).get())
        });
        self.shared.leave(table, &Wakers::new());
        kept
    }

    /// Tests for a conflicting lock, also of a program of the host: the answer of a question is its lock.
    pub fn test(&self, file: u64, wanted: &Lock, now: Nanos) -> Result<(), LockRefusal> {
        if let Some(held) = self.conflict(file, wanted, now) {
            return Err(LockRefusal::Held(held));
        }
        let mut table = lock(&self.shared.table);
        let tested = table.with(file, |_, of_file| {
            let Some(host) = &mut of_file.host else { return Ok(()) };
            if host.is_asked() {
                return Err(LockRefusal::Busy);
            }
            let number = self.next_question();
            host.ask(number, *wanted, None);
            Err(LockRefusal::Asked(number))
        });
        self.shared.leave(table, &Wakers::new());
        tested
    }

    /// Ends a question that the host has answered. The owner has the lock, or what it had before. A refused owner with
    /// a `waker` waits as by [`Locks::lock_or_wait`].
    pub fn finish(
        &self,
        file: u64,
        question: HostQuestion,
        waker: Option<&Arc<dyn LockWaker>>,
        now: Nanos,
    ) -> Result<(), LockRefusal> {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        let answered = table.with(file, |_, of_file| {
            let (wanted, answer) = of_file.host.as_mut()?.take_answer(question)?;
            if let (Ok(()), Some(waker)) = (&answer, waker) {
                of_file.queue.leave(&wanted, waker);
            }
            of_file.offer_after(&wanted, now, &mut wakers);
            Some((wanted, answer))
        });
        // The end of the owner's holder has ended the question.
        let mut result = Err(LockRefusal::Full);
        if let Some((wanted, answer)) = answered {
            result = match waker {
                Some(waker) => Self::or_wait(&mut table, file, wanted, waker, answer),
                None => answer,
            };
            table.settle(file, wanted.owner.holder);
            self.shared.tell_end_of_offers(&table, file);
        }
        self.shared.leave(table, &wakers);
        result
    }

    /// Nobody takes the answer to a question: the owner has what it had before.
    pub fn give_up(&self, file: u64, question: HostQuestion, now: Nanos) {
        let mut wakers = Wakers::new();
        let mut table = lock(&self.shared.table);
        let Some(wanted) = table.files.get(&file).and_then(|it| it.host.as_ref()?.wanted(question)) else { return };
        table.with(file, |holders, of_file| {
            of_file.take_back(holders);
            of_file.host.iter_mut().for_each(|host| host.give_up());
            of_file.offer_after(&wanted, now, &mut wakers);
        });
        table.settle(file, wanted.owner.holder);
        self.shared.tell_end_of_offers(&table, file);
        self.shared.leave(table, &wakers);
    }

    /// Whether an owner has a lock in the table that the host has yet to allow.
    pub fn is_asked_for(&self, file: u64, owner: LockOwner) -> bool {
        let table = lock(&self.shared.table);
        let host = table.files.get(&file).and_then(|it| it.host.as_ref());
        host.is_some_and(|host| host.is_asked_for(owner))
    }

    fn poll_host(&self, file: u64, poll: impl FnOnce(&mut OnHost) -> Poll<()>) -> Poll<()> {
        let mut table = lock(&self.shared.table);
        let host = table.files.get_mut(&file).and_then(|it| it.host.as_mut());
        host.map_or(Poll::Ready(()), |host| poll(host))
    }

    /// Waits for the host's answer to a question, or for the question's end.
    pub(crate) fn poll_answer(&self, file: u64, question: HostQuestion, waker: &Waker) -> Poll<()> {
        self.poll_host(file, |host| host.poll_answer(question, waker))
    }

    /// Waits until the host is asked nothing about a file.
    pub(crate) fn poll_unasked(&self, file: u64, waker: &Waker) -> Poll<()> {
        self.poll_host(file, |host| host.poll_unasked(waker))
    }

    /// The last unlock of a file, if the host has not seen it.
    pub(crate) fn unshown(&self, file: u64) -> Option<u64> {
        lock(&self.shared.table).files.get(&file)?.host.as_ref()?.unshown()
    }

    /// Waits until the host has seen an unlock.
    pub(crate) fn poll_shown(&self, file: u64, unlock: u64, waker: &Waker) -> Poll<()> {
        self.poll_host(file, |host| host.poll_shown(unlock, waker))
    }
}
