//! The changes of delegated files: each waits until other clients have returned their delegations.
//!
//! Owns: the wait of a change, and its end; which file a change of a name is of; whether a file may be delegated.
//! Does not own: delegations, recalls and their time limit (`delegations`); the changes (`data`, `names`).
//! Invariants: all front ends change files by the operations of the volume, and each of these begins here
//! (`product/nfs/tests/protocol/delegations.rs` has one test for each front end). A waiting change holds no lock, and
//! has changed nothing if its caller goes away. In the grace period a change waits while a client may reclaim a
//! delegation.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use afflux_engine::{Nanos, Platform};

use crate::delegations::{ChangeInProgress, Delegations};
use crate::error::VolumeError;
use crate::locks::{LockMode, Share};
use crate::objects::inode::Inode;
use crate::tree::attributes::Kind;
use crate::tree::caller::{Caller, Changer};
use crate::volume::Volume;

/// How long a call of a client waits before the client is asked to come back: a working holder returns a delegation
/// within milliseconds, and waiting calls would take others' slots.
const WAIT_NS: u64 = Nanos::SECOND;
/// The interval at which a waiting change recalls again: a holder may have refused the first call.
const RECALL_AGAIN_NS: u64 = 200 * Nanos::MILLISECOND;

impl<P: Platform> Volume<P> {
    /// The delegations of this volume's files.
    pub fn delegations(&self) -> &Arc<Delegations> {
        &self.delegations
    }

    /// Begins a change of an object if that takes no wait. None if others have delegations of it.
    #[inline]
    pub(crate) fn try_begin_change(&self, caller: &Caller, inode: &Inode<P>) -> Option<ChangeInProgress> {
        if !self.delegations.are_on() {
            return Some(ChangeInProgress::default());
        }
        self.try_begin_change_now(caller, inode)
    }

    #[cold]
    fn try_begin_change_now(&self, caller: &Caller, inode: &Inode<P>) -> Option<ChangeInProgress> {
        let now = self.now();
        inode.note_change(now);
        if self.is_held_off(caller) {
            return None;
        }
        self.delegations.begin_change(inode.fileid(), caller.changer(), now).ok()
    }

    /// Whether a client of an earlier server may still reclaim a delegation, or an open that denies uses.
    fn is_held_off(&self, caller: &Caller) -> bool {
        caller.changer() != Changer::Opener && self.locks.check_use_in_grace().is_err()
    }

    /// Begins a change of an object: bytes, attributes or names. Waits until no other client has a delegation of the
    /// object. The call of a client waits a second; a program on a mount waits to the end, a lease at most.
    ///
    /// # Errors
    /// [`VolumeError::Delayed`] after that second.
    pub async fn begin_change(&self, caller: &Caller, inode: &Inode<P>) -> Result<ChangeInProgress, VolumeError> {
        if !self.delegations.are_on() || inode.kind() != Kind::Regular {
            return Ok(ChangeInProgress::default());
        }
        inode.note_change(self.now());
        // A program cannot be asked to come again.
        let gives_up = if caller.is_listening() { Nanos(u64::MAX) } else { self.now().after(WAIT_NS) };
        self.wait_to_change(caller, inode.fileid(), gives_up).await.ok_or(VolumeError::Delayed)
    }

    /// Begins a lock of the file with a number, by a program on a mount: a client with a delegation gives its programs
    /// shared locks without asking. An exclusive lock waits as a change does, until no client has a delegation.
    pub(crate) async fn begin_lock(&self, file: u64, mode: LockMode) -> ChangeInProgress {
        if mode == LockMode::Shared || !self.delegations.are_on() {
            return ChangeInProgress::default();
        }
        loop {
            if let Some(change) = self.wait_to_change(&Caller::SERVER, file, Nanos(u64::MAX)).await {
                return change;
            }
        }
    }

    /// Waits until nobody else has a delegation of a file. None if somebody still has one when the caller gives up.
    async fn wait_to_change(&self, caller: &Caller, file: u64, gives_up: Nanos) -> Option<ChangeInProgress> {
        let platform = self.engine.platform();
        loop {
            let now = self.now();
            let until = match self.is_held_off(caller) {
                true => gives_up,
                false => match self.delegations.begin_change(file, caller.changer(), now) {
                    Ok(change) => return Some(change),
                    Err(until) => until,
                },
            };
            if now >= gives_up {
                return None;
            }
            let again = until.min(gives_up).min(now.after(RECALL_AGAIN_NS));
            let mut timer = pin!(platform.sleep_until(again));
            let mut is_waiting = false;
            poll_fn(|cx| {
                if timer.as_mut().poll(cx).is_ready() || is_waiting {
                    return Poll::Ready(());
                }
                self.delegations.try_wait(file, cx.waker());
                is_waiting = true;
                Poll::Pending
            })
            .await;
        }
    }

    /// Begins the change of the object that a name leads to, before the name is taken from it. An object that cannot be
    /// looked up needs none: the call fails, or finds one that just came.
    pub(crate) async fn begin_change_of_name(
        &self,
        caller: &Caller,
        directory: &Arc<Inode<P>>,
        name: &[u8],
    ) -> Result<ChangeInProgress, VolumeError> {
        if !self.delegations.are_on() {
            return Ok(ChangeInProgress::default());
        }
        let found = match self.try_lookup(directory, name) {
            Some(found) => Ok(found),
            None => Box::pin(self.lookup_by(&Caller::SERVER, directory, name)).await,
        };
        match found {
            Ok((inode, _)) => self.begin_change(caller, &inode).await,
            Err(_) => Ok(ChangeInProgress::default()),
        }
    }

    /// Whether a file may be delegated for reading. No open writes the file or denies reading, no lock of its bytes is
    /// exclusive, and the last change is `quiet_ns` ago.
    pub fn may_delegate(&self, inode: &Inode<P>, quiet_ns: u64) -> bool {
        let uses = self.locks.uses_of(inode.fileid());
        let is_read_alone = uses.access & Share::WRITE == 0 && uses.deny & Share::READ == 0;
        let is_quiet = inode.changed_at().is_none_or(|changed| self.now().since(changed) >= quiet_ns);
        is_read_alone && is_quiet && inode.kind() == Kind::Regular && !self.locks.has_exclusive(inode.fileid())
    }
}
