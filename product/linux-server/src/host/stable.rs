//! Durable changes of names and attributes: several changes share one sync of the host.
//!
//! Owns: which changes share a sync, which thread makes it, the waiters for its end; the kinds of file systems by the
//! changes that one sync makes durable, how they are distinguished.
//! Does not own: the sync (`entries`), the changes themselves.
//! Invariants: a round's sync begins after every change that shares it was made. A group makes one sync at a time, the
//! next begins when it ends, and no sync waits for more changes. A requested round ends, even if its waiters are gone.
//! A kind counts for more than "the object itself" only where the kernel's code for it was read.
//!
//! The pool's thread that made a change goes on with the sync, unless another thread makes one: then that thread makes
//! the next round, too. So a single change needs no second thread, and changes that come during a sync share the next
//! one.
//!
//! - ext4 with a journal: `fsync` of any directory commits the running transaction (`ext4_fsync_journal` calls
//!   `ext4_force_commit` for any object but a regular file). ext3 and earlier ext4 did the same by
//!   `ext4_should_journal_data`. Each completed change of names and attributes is in that transaction or an earlier
//!   one. So one call suffices for the whole file system.
//! - XFS: `fsync` forces the log up to the object's last change (`xfs_log_force_inode`), and changes are in the log in
//!   their order. So the sync of the object changed last covers all objects changed before it, and `fsync` of those
//!   finds nothing to do. Objects changed at the same instant have no known order, so each is synced.
//! - All others (ext4 without a journal, overlayfs, btrfs with its log tree for one directory, ...): each directory is
//!   synced by itself.

use std::future::Future;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::{fs, mem};

use afflux_linux_device::pool::run_deferred;
use afflux_volume::{DeviceKey, Kind, VolumeError};
use rustix::fs::fstatfs;

use crate::host::calls::device_name;

/// Changes that one sync of the host makes durable together.
pub(super) struct Group<T>(Mutex<PendingChanges<T>>);

struct PendingChanges<T> {
    /// Objects changed since the last sync began, in the order of the changes. Bounded by the calls in progress.
    changed: Vec<T>,
    /// The round that makes them durable.
    next: Option<Arc<Round>>,
    /// A thread makes syncs now.
    led: bool,
}

pub(super) struct Round(Mutex<Progress>);

enum Progress {
    /// Not over yet; holds the wakers of its waiters.
    Awaited(Vec<Waker>),
    Over(Result<(), VolumeError>),
}

impl<T> Group<T> {
    /// A group without requests.
    pub(super) fn new() -> Self {
        Self(Mutex::new(PendingChanges { changed: Vec::new(), next: None, led: false }))
    }

    /// Records objects that were changed. Returns the round that makes them durable, and whether the caller has to
    /// [`lead`](Self::lead).
    pub(super) fn ask(&self, changed: impl IntoIterator<Item = T>) -> (Arc<Round>, bool) {
        let mut asked = lock(&self.0);
        asked.changed.extend(changed);
        let next = asked.next.get_or_insert_with(|| Arc::new(Round(Mutex::new(Progress::Awaited(Vec::new())))));
        let next = Arc::clone(next);
        (next, !mem::replace(&mut asked.led, true))
    }

    /// Makes one round after the other, each by a call of `sync`, until no round is requested.
    pub(super) fn lead(&self, mut sync: impl FnMut(&[T]) -> Result<(), VolumeError>) {
        while let Some((round, changed)) = self.begin() {
            round.end(sync(&changed));
            // The rounds may go on for long.
            run_deferred();
        }
    }

    fn begin(&self) -> Option<(Arc<Round>, Vec<T>)> {
        let mut asked = lock(&self.0);
        let next = asked.next.take();
        asked.led = next.is_some();
        next.map(|round| (round, mem::take(&mut asked.changed)))
    }
}

impl Round {
    fn end(&self, result: Result<(), VolumeError>) {
        let before = mem::replace(&mut *lock(&self.0), Progress::Over(result));
        if let Progress::Awaited(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits for the end of the round.
    pub(super) fn ended(self: Arc<Self>) -> impl Future<Output = Result<(), VolumeError>> + Send + 'static {
        Ended(self)
    }
}

struct Ended(Arc<Round>);

impl Future for Ended {
    type Output = Result<(), VolumeError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *lock(&self.0.0) {
            Progress::Over(result) => Poll::Ready(result.clone()),
            Progress::Awaited(wakers) => {
                if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const EXT4_MAGIC: u64 = 0xef53;
const XFS_MAGIC: u64 = 0x5846_5342;

/// Further changes that the sync of one object makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SyncScope {
    /// Every earlier change of the file system, if the object is a directory.
    Everything,
    /// Every change made before the object's last.
    Earlier,
    /// No other change, as far as is known.
    Nothing,
}

/// The further changes that a sync covers on the file system of `directory`, its `device`.
pub(super) fn covered_on(directory: BorrowedFd<'_>, device: DeviceKey, kind: Kind) -> SyncScope {
    let Ok(found) = fstatfs(directory) else { return SyncScope::Nothing };
    // The field's type differs between architectures.
    match found.f_type as u64 {
        EXT4_MAGIC if kind == Kind::Directory && has_journal(device) => SyncScope::Everything,
        XFS_MAGIC => SyncScope::Earlier,
        _ => SyncScope::Nothing,
    }
}

/// Whether the ext4 on a device has a journal: then a kernel thread writes it.
fn has_journal(device: DeviceKey) -> bool {
    let task = fs::read_to_string(format!("/sys/fs/ext4/{}/journal_task", device_name(device)));
    task.is_ok_and(|task| task.trim().parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests;
