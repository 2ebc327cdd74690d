//! GETLK, SETLK and SETLKW, the end of locks with a file's close, and the share reservations of opens.
//!
//! Owns: the kernel's form of locks; the change of a `flock`'s mode, which releases the lock first.
//! Does not own: conflicts and the queue (the volume); the wait's interrupt (`answering`).
//! Invariants: the kernel asks here only if the server agreed on it at the start. Then no lock outlives the open file
//! and the owner that it was taken with.

use std::sync::Arc;

use afflux_volume::{
    HolderId, HostLocks, Inode, Lock, LockFamily, LockMode, LockOwner, LockRefusal, Nanos, Platform, Share, Span,
};

use crate::abi::{Put, lock as kind, o};
use crate::mount::{Mount, Outcome};
use crate::reply::{Errno, ReplyDraft};
use crate::request::{Locking, RequestHeader};

impl From<LockRefusal> for Errno {
    fn from(refusal: LockRefusal) -> Self {
        match refusal {
            LockRefusal::Held(_) | LockRefusal::Ending(_) | LockRefusal::Grace => Self::TRY_AGAIN,
            // Only those who do not wait for the host.
            LockRefusal::Asked(_) | LockRefusal::Busy => Self::TRY_AGAIN,
            LockRefusal::Deadlock => Self::DEADLOCK,
            LockRefusal::Full | LockRefusal::Crowded => Self::NO_LOCKS,
        }
    }
}

/// The mount's own number as a holder. A kernel with which the server did not agree on locks gets an error.
fn locker<P: Platform>(on: &Mount<P>) -> Result<HolderId, Errno> {
    on.locker.ok_or(Errno::NO_OPERATION)
}

fn now<P: Platform>(on: &Mount<P>) -> Nanos {
    on.volume.engine().platform().now()
}

/// The file's locks on the host. The caller holds them while it locks bytes.
async fn on_host<P: Platform>(on: &Mount<P>, locking: &Locking) -> Result<Option<Arc<dyn HostLocks>>, Errno> {
    let inode = Arc::clone(&on.opened(locking.fh)?.inode);
    Ok(on.volume.host_locks(&inode).await?)
}

/// The file, the owner and the bytes of a lock.
fn lock_target<P: Platform>(on: &Mount<P>, locking: &Locking) -> Result<(u64, LockOwner, Span), Errno> {
    let family = if locking.is_of_flock { LockFamily::Files } else { LockFamily::Bytes };
    let owner = LockOwner { holder: locker(on)?, number: locking.owner, family };
    let last = if locking.last >= kind::LAST { u64::MAX } else { locking.last };
    let span = Span::between(locking.first, last).ok_or(Errno::INVALID)?;
    Ok((on.opened(locking.fh)?.inode.fileid(), owner, span))
}

fn mode(locking: &Locking) -> Result<LockMode, Errno> {
    match locking.kind {
        kind::SHARED => Ok(LockMode::Shared),
        kind::EXCLUSIVE => Ok(LockMode::Exclusive),
        _ => Err(Errno::INVALID),
    }
}

/// The file and the lock that a program wants.
fn wanted<P: Platform>(on: &Mount<P>, locking: &Locking) -> Result<(u64, Lock), Errno> {
    let (file, owner, span) = lock_target(on, locking)?;
    Ok((file, Lock { owner, span, mode: mode(locking)?, process: locking.process }))
}

/// Tests for a conflicting lock without waiting. None if the host may have one.
pub(super) fn try_test<P: Platform>(on: &Mount<P>, locking: &Locking) -> Option<Outcome> {
    let tested = || {
        let (file, wanted) = wanted(on, locking)?;
        Ok(shown(locking, on.volume.locks().conflict(file, &wanted, now(on))))
    };
    (!on.volume.locks().are_on_host()).then(tested)
}

/// Tests for a conflicting lock.
pub(super) async fn test<P: Platform>(on: &Mount<P>, locking: &Locking) -> Outcome {
    let _on_host = on_host(on, locking).await?;
    let (file, wanted) = wanted(on, locking)?;
    Ok(shown(locking, on.volume.lock_in_the_way(file, &wanted).await))
}

/// The answer to a test.
fn shown(locking: &Locking, in_the_way: Option<Lock>) -> ReplyDraft {
    let mut answer = ReplyDraft::empty();
    let head = &mut answer.head;
    match in_the_way {
        Some(other) => {
            head.u64(other.span.first().min(kind::LAST));
            head.u64(other.span.last().min(kind::LAST));
            head.u32(if other.mode == LockMode::Exclusive { kind::EXCLUSIVE } else { kind::SHARED });
            head.u32(other.process);
        }
        None => {
            head.u64(locking.first);
            head.u64(locking.last);
            head.u32(kind::NONE);
            head.u32(0);
        }
    }
    answer
}

/// Locks or unlocks without waiting. None if the program waits in the queue, if the end of a conflicting holder has to
/// come first, or if the host takes part.
pub(super) fn try_lock<P: Platform>(on: &Mount<P>, locking: &Locking, waits: bool) -> Option<Outcome> {
    // With delegations an exclusive lock may have to wait for one to be returned.
    if on.volume.locks().are_on_host() || on.volume.delegations().are_on() && locking.kind == kind::EXCLUSIVE {
        return None;
    }
    let wanted = match locking.kind {
        kind::NONE => lock_target(on, locking).map(|_| None),
        _ => wanted(on, locking).map(Some),
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => return Some(Err(error)),
    };
    let locked = match (unlock(on, locking), wanted) {
        (Ok(()), Some(_)) if waits => return None,
        (Ok(()), Some((file, wanted))) => on.volume.locks().lock(file, wanted, now(on)),
        (unlocked, _) => unlocked,
    };
    match locked {
        Err(LockRefusal::Ending(_)) => None,
        locked => Some(locked.map(|()| ReplyDraft::empty()).map_err(Errno::from)),
    }
}

/// Unlocks, also what the owner of a `flock` had before it changes the mode.
fn unlock<P: Platform>(on: &Mount<P>, locking: &Locking) -> Result<(), LockRefusal> {
    let Ok((file, owner, span)) = lock_target(on, locking) else { return Ok(()) };
    match locking.kind {
        kind::NONE => on.volume.locks().unlock(file, owner, span, now(on)),
        // As in the kernel: two programs that hold one shared lock and both want an exclusive one would wait for each
        // other.
        _ if locking.is_of_flock => on.volume.locks().unlock(file, owner, Span::WHOLE, now(on)),
        _ => Ok(()),
    }
}

/// Locks once no lock conflicts, or at once.
pub(super) async fn lock<P: Platform>(on: &Mount<P>, locking: &Locking, waits: bool) -> Outcome {
    let (file, ..) = lock_target(on, locking)?;
    if locking.kind == kind::NONE {
        unlock(on, locking)?;
        on.volume.wait_until_shown(file).await;
        return Ok(ReplyDraft::empty());
    }
    let _on_host = on_host(on, locking).await?;
    // The file stays while the program waits.
    let _opened = on.opened(locking.fh)?;
    let (file, wanted) = wanted(on, locking)?;
    unlock(on, locking)?;
    if waits {
        on.volume.lock_in_order(file, wanted).await?;
        return Ok(ReplyDraft::empty());
    }
    let mut locked = on.volume.lock(file, wanted).await;
    if let Err(LockRefusal::Ending(holder)) = locked {
        on.volume.wait_for_end(holder).await;
        locked = on.volume.lock(file, wanted).await;
    }
    locked?;
    Ok(ReplyDraft::empty())
}

/// Waits until programs of the host see the unlocks of a file.
pub(super) async fn show_unlocks<P: Platform>(on: &Mount<P>, fh: u64) {
    if let Ok(file) = on.opened(fh) {
        let number = file.inode.fileid();
        on.volume.wait_until_shown(number).await;
    }
}

fn end<P: Platform>(on: &Mount<P>, fh: u64, number: u64, family: LockFamily) {
    if let (Some(holder), Ok(file)) = (on.locker, on.opened(fh)) {
        let owner = LockOwner { holder, number, family };
        // Unlocking the whole file needs no further range.
        let _ = on.volume.locks().unlock(file.inode.fileid(), owner, Span::WHOLE, now(on));
    }
}

/// A program has closed one of its descriptors of a file, which ends all its locks of the file by `fcntl`.
pub(super) fn flush<P: Platform>(on: &Mount<P>, fh: u64, owner: u64) {
    end(on, fh, owner, LockFamily::Bytes);
}

/// The last descriptor of an open file is closed, which ends its lock by `flock`.
pub(super) fn release<P: Platform>(on: &Mount<P>, fh: u64, owner: Option<u64>) {
    if let Some(owner) = owner {
        end(on, fh, owner, LockFamily::Files);
    }
}

/// The uses that an open makes of a file.
fn access(flags: u32) -> u8 {
    match flags & o::ACCMODE {
        o::RDONLY => Share::READ,
        o::WRONLY => Share::WRITE,
        _ => Share::READ | Share::WRITE,
    }
}

/// Notes the use that an open makes of a file. Refuses it if a client denies that use.
pub(super) fn share<P: Platform>(on: &Mount<P>, fh: u64, inode: &Arc<Inode<P>>, flags: u32) -> Result<(), Errno> {
    let Some(locker) = on.locker else { return Ok(()) };
    let noted = note_use(on, inode.fileid(), (locker, fh), access(flags));
    if noted.is_err() {
        on.close(fh);
    }
    noted
}

/// Notes the share reservation of an open, unless a client denies them, or may reclaim an open that does.
fn note_use<P: Platform>(on: &Mount<P>, file: u64, open: (HolderId, u64), access: u8) -> Result<(), Errno> {
    let locks = on.volume.locks();
    let checked = locks.check_use(file, 0, now(on));
    let noted = checked.and_then(|()| locks.share(file, open, Share { access, deny: 0 }, now(on)));
    noted.map_err(|_| Errno::BUSY)
}

/// The share reservation of an open that truncates a file, from before the truncation until the drop: then the open has
/// its own.
pub(super) struct CutReservation<'a, P: Platform> {
    on: &'a Mount<P>,
    /// The file, and the number of this use.
    of: Option<(u64, (HolderId, u64))>,
}

impl<P: Platform> Drop for CutReservation<'_, P> {
    fn drop(&mut self) {
        self.of.iter().for_each(|(file, open)| self.on.volume.locks().end_share(*file, *open));
    }
}

/// Notes all that an open which cuts a file off will do with it, before the cut. Refuses it if a client denies any of
/// that.
pub(super) fn reserve_cut<'a, P: Platform>(
    on: &'a Mount<P>,
    header: &RequestHeader,
    inode: &Arc<Inode<P>>,
    flags: u32,
) -> Result<CutReservation<'a, P>, Errno> {
    let Some(locker) = on.locker else { return Ok(CutReservation { on, of: None }) };
    // No open file has such a number.
    let (file, open) = (inode.fileid(), (locker, header.unique | 1 << 63));
    note_use(on, file, open, access(flags) | Share::WRITE)?;
    Ok(CutReservation { on, of: Some((file, open)) })
}

/// Refuses to cut a file off if a client denies writing.
pub(super) fn check_cut<P: Platform>(on: &Mount<P>, inode: &Arc<Inode<P>>) -> Result<(), Errno> {
    match on.locker {
        None => Ok(()),
        Some(_) => on.volume.locks().check_use(inode.fileid(), Share::WRITE, now(on)).map_err(|_| Errno::BUSY),
    }
}
