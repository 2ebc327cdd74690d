//! Waiting for a lock, for callers on this host; the host's own locks; uses without an open.
//!
//! Owns: the wait, and its end when the caller gives up; the file that the host's locks are of; the wait for the host's
//! answers; the refusal of a use that somebody's open denies.
//! Does not own: the queue, questions to the host (`locks`).
//! Invariants: a wait that is dropped leaves the queue, and no lock behind. In the grace period a program waits for a
//! lock as for a held lock.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use afflux_engine::{Nanos, Platform};
use futures_util::task::AtomicWaker;

use crate::error::VolumeError;
use crate::locks::{HolderId, HostLocks, HostQuestion, Lock, LockRefusal, LockWaker, Locks, ShareRefusal};
use crate::objects::inode::Inode;
use crate::volume::Volume;

/// Longest time for which a call waits for the end of a holder of locks. Its end waits for a write of the disk that has
/// the list of clients.
const END_NS: u64 = 2 * Nanos::SECOND;

/// Wakes the caller's task.
#[derive(Default)]
struct Caller {
    task: AtomicWaker,
    /// It may ask again.
    is_woken: AtomicBool,
}

impl LockWaker for Caller {
    fn wake(&self) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }

    fn open(&self) -> Option<u64> {
        None
    }
}

struct Wait<'a, P: Platform> {
    volume: &'a Volume<P>,
    file: u64,
    wanted: Lock,
    waker: Arc<dyn LockWaker>,
}

impl<P: Platform> Drop for Wait<'_, P> {
    fn drop(&mut self) {
        self.volume.locks.leave(self.file, &self.wanted, &self.waker, self.volume.now());
    }
}

/// A question to the host. A drop before [`Locks::finish`] gives it up.
pub struct AskedHost<'a, P: Platform> {
    volume: &'a Volume<P>,
    file: u64,
    question: HostQuestion,
}

impl<P: Platform> AskedHost<'_, P> {
    /// Waits for the answer.
    pub async fn answered(&self) {
        poll_fn(|cx| self.volume.locks.poll_answer(self.file, self.question, cx.waker())).await;
    }
}

impl<P: Platform> Drop for AskedHost<'_, P> {
    fn drop(&mut self) {
        self.volume.locks.give_up(self.file, self.question, self.volume.now());
    }
}

impl<P: Platform> Volume<P> {
    /// The locks of this volume's files, by their numbers.
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Refuses a use of a file without an open, such as a READ of version 3, if an open denies it.
    #[inline]
    pub fn check_undenied(&self, inode: &Inode<P>, access: u8) -> Result<(), VolumeError> {
        if self.locks.has_denials() { self.check_undenied_now(inode, access) } else { Ok(()) }
    }

    #[cold]
    fn check_undenied_now(&self, inode: &Inode<P>, access: u8) -> Result<(), VolumeError> {
        self.locks.check_use(inode.fileid(), access, self.now()).map_err(|refusal| match refusal {
            ShareRefusal::Denied => VolumeError::Denied,
            ShareRefusal::Ending(_) | ShareRefusal::Grace => VolumeError::Delayed,
        })
    }

    /// Waits for the end of a holder of locks, [`END_NS`] at most: the list of clients for a later server may stand on
    /// a disk that fails.
    pub async fn wait_for_end(&self, holder: HolderId) {
        let platform = self.engine.platform();
        let mut limit = pin!(platform.sleep_until(platform.now().after(END_NS)));
        poll_fn(|cx| match self.locks.poll_end(holder, cx.waker()) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => limit.as_mut().poll(cx),
        })
        .await
    }

    /// A file's locks on the host, if they are made already; none inside if the host shows no locks.
    pub fn try_host_locks(&self, file: u64) -> Option<Option<Arc<dyn HostLocks>>> {
        if self.locks.are_on_host() { self.locks.host_of(file).map(Some) } else { Some(None) }
    }

    /// A file's locks on the host, made if the host shows locks. The caller holds them while it locks.
    pub async fn host_locks(&self, inode: &Arc<Inode<P>>) -> Result<Option<Arc<dyn HostLocks>>, VolumeError> {
        if let Some(known) = self.try_host_locks(inode.fileid()) {
            return Ok(known);
        }
        let opened = self.tree.open_locks(&inode.node).await?;
        Ok(Some(self.locks.host_begins(inode.fileid(), opened)))
    }

    /// Holds a question to the host, about a file.
    pub fn asked_host(&self, file: u64, question: HostQuestion) -> AskedHost<'_, P> {
        AskedHost { volume: self, file, question }
    }

    /// Waits until the host is asked nothing else about a file.
    pub async fn wait_for_host(&self, file: u64) {
        poll_fn(|cx| self.locks.poll_unasked(file, cx.waker())).await;
    }

    /// Waits until programs of the host see all unlocks of a file up to now.
    pub async fn wait_until_shown(&self, file: u64) {
        if let Some(unlock) = self.locks.unshown(file) {
            poll_fn(|cx| self.locks.poll_shown(file, unlock, cx.waker())).await;
        }
    }

    /// Asks once nothing else is asked about the file, and waits for the host's answer.
    async fn asking(
        &self,
        file: u64,
        waker: Option<&Arc<dyn LockWaker>>,
        ask: impl Fn() -> Result<(), LockRefusal>,
    ) -> Result<(), LockRefusal> {
        loop {
            match ask() {
                Err(LockRefusal::Busy) => self.wait_for_host(file).await,
                Err(LockRefusal::Asked(question)) => {
                    let asked = self.asked_host(file, question);
                    asked.answered().await;
                    return self.locks.finish(file, question, waker, self.now());
                }
                result => return result,
            }
        }
    }

    /// Locks bytes of a file, unless a lock or a waiter conflicts.
    pub async fn lock(&self, file: u64, wanted: Lock) -> Result<(), LockRefusal> {
        let _change = self.begin_lock(file, wanted.mode).await;
        self.asking(file, None, || self.locks.lock(file, wanted, self.now())).await
    }

    /// A conflicting lock of another owner, or of a program of the host.
    pub async fn lock_in_the_way(&self, file: u64, wanted: &Lock) -> Option<Lock> {
        match self.asking(file, None, || self.locks.test(file, wanted, self.now())).await {
            Err(LockRefusal::Held(held)) => Some(held),
            _ => None,
        }
    }

    /// Locks bytes of a file once nothing conflicts. The only errors are of a full table.
    pub async fn lock_in_order(&self, file: u64, wanted: Lock) -> Result<(), LockRefusal> {
        let _change = self.begin_lock(file, wanted.mode).await;
        let caller = Arc::new(Caller::default());
        let wait = Wait { volume: self, file, wanted, waker: Arc::clone(&caller) as _ };
        loop {
            let ask = || self.locks.lock_or_wait(file, wanted, &wait.waker, self.now());
            match self.asking(file, Some(&wait.waker), ask).await {
                Err(LockRefusal::Held(_) | LockRefusal::Ending(_) | LockRefusal::Grace) => {}
                result => return result,
            }
            poll_fn(|cx| {
                caller.task.register(cx.waker());
                if caller.is_woken.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }
}
