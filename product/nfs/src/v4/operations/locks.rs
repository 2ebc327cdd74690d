//! LOCK, LOCKT, LOCKU and FREE_STATEID.
//!
//! Owns: the steps of a LOCK: the owner, the volume's lock, the stateid; the conflicting lock in the form for a client.
//! Does not own: conflicts and the queue (the volume); the tables of stateids (`state`).
//! Invariants: a LOCK waits for the host's answer alone, and not under the lock of the state. The server notifies a
//! client whose program waits when to ask again, if the client has a back channel. A refused LOCK makes no stateid.
//! Where a stateid is given, the volume has the lock.

use std::sync::Arc;

use afflux_volume::{HolderId, HostLocks, HostQuestion, Lock, LockMode, LockRefusal, Nanos, Platform, Span};

use super::super::back_channel::BackChannel;
use super::super::client_state::lock_owner;
use super::super::codec::{LockArgs, Locker};
use super::super::compound::{Compound, Object};
use super::super::locking::{LockBy, LockRequest, UnlockRequest, full};
use super::super::state::stateids::{Stateid, StateidOther};
use super::opens::{check_reclaim, other, write_stateid};
use crate::operations::{Ended, Operations};
use crate::status::NfsStatus;
use crate::v4::compound::check_regular;
use crate::v4::locking::Denied;
use crate::wire::reply::Draft;

fn span(offset: u64, len: u64) -> Result<Span, NfsStatus> {
    Span::of(offset, len).ok_or(NfsStatus::Inval)
}

fn mode(arguments: &LockArgs) -> LockMode {
    if arguments.is_exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

/// Refuses a lock, and notes which other lock conflicts with it.
fn deny<P: Platform>(compound: &mut Compound<P>, file: u64, lock: Lock) -> NfsStatus {
    let state = compound.service.state();
    let owner = match state.lock_states.of_owner(file, lock.owner.number) {
        Some(known) => (known.clientid, known.owner.clone()),
        None => (0, format!("process {}", lock.process).into_bytes().into()),
    };
    drop(state);
    compound.denied = Some(Box::new(Denied { lock, owner }));
    NfsStatus::Denied
}

/// The regular file that a lock is of.
fn file_of<P: Platform>(compound: &Compound<P>) -> Result<u64, NfsStatus> {
    match compound.object()? {
        Object::Above => Err(NfsStatus::Isdir),
        Object::Inode(inode) => {
            check_regular(inode.kind())?;
            Ok(inode.fileid())
        }
    }
}

/// The lock owner that a LOCK names.
fn locker<'a, P: Platform>(
    on: &'a impl Operations<P>,
    compound: &Compound<P>,
    locker: &Locker,
) -> Result<LockBy<'a>, NfsStatus> {
    let (named, is_of_locks) = match *locker {
        Locker::OpenToLockOwner { open_stateid, .. } => (other(compound, open_stateid)?, false),
        Locker::ExistLockOwner(stateid) => (other(compound, stateid)?, true),
    };
    match *locker {
        _ if named.0.is_of_locks() != is_of_locks => Err(NfsStatus::BadStateid),
        Locker::OpenToLockOwner { lock_owner, .. } => {
            Ok(LockBy::OpenToLockOwner { open: named, owner: on.bytes(lock_owner) })
        }
        Locker::ExistLockOwner(_) => Ok(LockBy::ExistLockOwner(named)),
    }
}

/// A file's locks on the host, where programs of the host are to see them. The caller holds them while it locks bytes.
async fn on_host<P: Platform>(on: &impl Operations<P>, compound: &Compound<P>) -> Ended<Option<Arc<dyn HostLocks>>> {
    match on.volume().try_host_locks(file_of(compound)?) {
        Some(known) => Ok(known),
        None => Ok(Box::pin(on.task()?.volume.host_locks(&compound.inode()?)).await?),
    }
}

/// LOCK of a file, if the host has no part.
pub(super) fn try_lock<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: &LockArgs,
    reclaims: bool,
    by: &Locker,
) -> Option<Result<(), NfsStatus>> {
    if on.volume().locks().are_on_host() {
        return None;
    }
    match locked(on, compound, draft, arguments, reclaims, None, by) {
        Err(LockStop::Ending(_) | LockStop::Asked(_) | LockStop::Busy) => None,
        Err(LockStop::Status(status)) => Some(Err(status)),
        Ok(()) => Some(Ok(())),
    }
}

pub(super) async fn lock<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: &LockArgs,
    reclaims: bool,
    by: &Locker,
) -> Ended {
    // Known before the host is asked: a call that must not wait goes no further.
    let volume = on.task()?.volume;
    let _on_host = on_host(on, compound).await?;
    let file = file_of(compound)?;
    let mut has_waited = false;
    loop {
        let stop = match locked(on, compound, draft, arguments, reclaims, None, by) {
            Err(LockStop::Asked(question)) => {
                let asked = volume.asked_host(file, question);
                asked.answered().await;
                // The drop of the question behind this takes the lock back, if the client or its open has ended.
                locked(on, compound, draft, arguments, reclaims, Some(question), by)
            }
            result => result,
        };
        match stop {
            Ok(()) => return Ok(()),
            Err(LockStop::Status(status)) => return Err(status.into()),
            Err(LockStop::Busy) => volume.wait_for_host(file).await,
            Err(LockStop::Ending(holder)) if !has_waited => {
                volume.wait_for_end(holder).await;
                has_waited = true;
            }
            Err(LockStop::Ending(_) | LockStop::Asked(_)) => return Err(NfsStatus::Delay.into()),
        }
    }
}

/// Why a LOCK is not granted.
enum LockStop {
    /// This holder has a conflicting lock, and ends.
    Ending(HolderId),
    /// The host is asked.
    Asked(HostQuestion),
    /// The host is asked something else about the file.
    Busy,
    Status(NfsStatus),
}

impl From<NfsStatus> for LockStop {
    fn from(status: NfsStatus) -> Self {
        Self::Status(status)
    }
}

fn locked<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: &LockArgs,
    reclaims: bool,
    asked: Option<HostQuestion>,
    by: &Locker,
) -> Result<(), LockStop> {
    let (file, clientid) = (file_of(compound)?, compound.clientid()?);
    let span = span(arguments.offset, arguments.len)?;
    check_reclaim(compound, clientid, reclaims)?;
    if let Some(stateid) = compound.changed_before() {
        write_stateid(stateid, &mut draft.writer);
        compound.set_stateid(stateid);
        return Ok(());
    }
    let (by, party, mark) = (locker(on, compound, by)?, compound.speaker.0, compound.mark());
    let request = LockRequest { clientid, party, file, by, span, mode: mode(arguments), reclaims, mark, asked };
    let way = if arguments.waits { way_back(on, compound) } else { None };
    let stateid = match compound.service.lock(&request, way, Nanos(compound.now_ns))? {
        Err(LockRefusal::Held(other)) => return Err(deny(compound, file, other).into()),
        Err(LockRefusal::Ending(holder)) => return Err(LockStop::Ending(holder)),
        Err(LockRefusal::Asked(question)) => return Err(LockStop::Asked(question)),
        Err(LockRefusal::Busy) => return Err(LockStop::Busy),
        Err(LockRefusal::Grace) => return Err(NfsStatus::Grace.into()),
        Err(LockRefusal::Deadlock) => return Err(NfsStatus::Deadlock.into()),
        Err(refusal @ (LockRefusal::Full | LockRefusal::Crowded)) => return Err(full(refusal).into()),
        Ok(stateid) => stateid,
    };
    write_stateid(stateid, &mut draft.writer);
    compound.set_stateid(stateid);
    Ok(())
}

/// The back channel over which the client learns that an owner of its may ask again, and the handle of the file. None
/// if the client wants no back channel.
fn way_back<'a, P: Platform>(
    on: &impl Operations<P>,
    compound: &'a Compound<P>,
) -> Option<(&'a Arc<BackChannel>, Vec<u8>)> {
    let back = &compound.session()?.back;
    let file = on.volume().handle(&*compound.inode().ok()?);
    back.is_wanted().then(|| (back, file.as_bytes().to_vec()))
}

pub(super) async fn lockt<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    arguments: LockArgs,
    owner: crate::wire::xdr::Field,
) -> Ended {
    let _on_host = on_host(on, compound).await?;
    let (file, clientid) = (file_of(compound)?, compound.clientid()?);
    let span = span(arguments.offset, arguments.len)?;
    let service = &compound.service;
    if service.is_in_grace() {
        // A lock may conflict that its client has not reclaimed yet.
        return Err(NfsStatus::Grace.into());
    }
    let number = service.owner_id(clientid, on.bytes(owner));
    let holder = service.state().holder(clientid, service.locks())?;
    let wanted = Lock { owner: lock_owner(holder, number), span, mode: mode(&arguments), process: 0 };
    let in_the_way = match service.locks().are_on_host() {
        false => service.locks().conflict(file, &wanted, Nanos(compound.now_ns)),
        true => Box::pin(on.task()?.volume.lock_in_the_way(file, &wanted)).await,
    };
    match in_the_way {
        None => Ok(()),
        Some(other) => Err(deny(compound, file, other).into()),
    }
}

/// The `other` and the seqid of a lock owner's stateid.
fn named<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(StateidOther, u32), NfsStatus> {
    let named = other(compound, stateid)?;
    if named.0.is_of_locks() { Ok(named) } else { Err(NfsStatus::BadStateid) }
}

/// LOCKU of a file, if the host has no part.
pub(super) fn try_unlock<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    len: u64,
) -> Option<Result<(), NfsStatus>> {
    if compound.service.locks().are_on_host() {
        return None;
    }
    unlocked(compound, draft, stateid, offset, len).transpose()
}

pub(super) async fn locku<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    len: u64,
) -> Ended {
    let file = file_of(compound)?;
    let volume = on.task()?.volume;
    while unlocked(compound, draft, stateid, offset, len)?.is_none() {
        volume.wait_for_host(file).await;
    }
    volume.wait_until_shown(file).await;
    Ok(())
}

/// None while the host is asked for a lock of the owner.
fn unlocked<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    offset: u64,
    len: u64,
) -> Result<Option<()>, NfsStatus> {
    let file = file_of(compound)?;
    let span = span(offset, len)?;
    let stateid = match compound.changed_before() {
        Some(stateid) => Some(stateid),
        None => {
            let ((at, seqid), mark) = (named(compound, stateid)?, compound.mark());
            let request = UnlockRequest { clientid: compound.clientid()?, file, at, seqid, span, mark };
            compound.service.unlock(&request, Nanos(compound.now_ns))?
        }
    };
    let Some(stateid) = stateid else { return Ok(None) };
    write_stateid(stateid, &mut draft.writer);
    compound.set_stateid(stateid);
    Ok(Some(()))
}

/// FREE_STATEID: a lock owner without locks has no stateid any more. CLOSE closes an open.
pub(super) fn free_stateid<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(), NfsStatus> {
    let (at, seqid) = other(compound, stateid)?;
    if at.is_of_delegations() {
        let clientid = compound.clientid()?;
        if compound.service.state().delegations.find_revoked(clientid, at, seqid).is_ok() {
            compound.note_end();
        }
        return compound.ended_before(compound.service.free_revoked(clientid, at, seqid));
    }
    if !at.is_of_locks() {
        let open = compound.service.state().opens.find(compound.clientid()?, at, seqid);
        return open.and(Err(NfsStatus::LocksHeld));
    }
    let clientid = compound.clientid()?;
    let is_there = compound.service.state().lock_states.find(clientid, at, seqid).is_ok();
    if is_there {
        compound.note_end();
    }
    compound.ended_before(compound.service.free(clientid, at, seqid, Nanos(compound.now_ns)))
}
