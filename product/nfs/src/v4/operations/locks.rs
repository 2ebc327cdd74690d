//! LOCK, LOCKT, LOCKU and FREE_STATEID.
//!
//! Owns: the steps of a LOCK: the owner, the volume's lock, the stateid; the lock in the way as a client is told.
//! Does not own: conflicts and turns (the volume); the tables of stateids (`state`).
//! Invariants: a LOCK waits for nothing: a client whose program waits is told when it may ask again, if it has a back
//! channel. A refused LOCK makes no stateid. Where a stateid is given, the volume has the lock.

use std::sync::Arc;

use afflux_volume::{HostLocks, Lock, LockMode, LockRefusal, LockWaker, Nanos, Platform, Share, Span};

use super::super::back_channel::{LockCall, LockNotice};
use super::super::client_state::lock_owner;
use super::super::codec::{LockArguments, Locker};
use super::super::compound::Compound;
use super::super::denied::Denied;
use super::super::service::{Service, full};
use super::super::state::lock_states::LockState;
use super::super::state::stateids::{StatePlace, Stateid};
use super::objects::check_regular;
use super::opens::{check_reclaim, place, write_stateid};
use crate::operations::{Ended, Operations};
use crate::status::Status;
use crate::wire::reply::Draft;

fn span(offset: u64, len: u64) -> Result<Span, Status> {
    Span::of(offset, len).ok_or(Status::Invalid)
}

fn mode(arguments: &LockArguments) -> LockMode {
    if arguments.is_exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

/// Refuses a lock, and notes which other is in its way.
fn deny<P: Platform>(compound: &mut Compound<P>, file: u64, lock: Lock) -> Status {
    let state = compound.service.state();
    let owner = match state.lock_states.of_owner(file, lock.owner.number) {
        Some(known) => (known.client, known.owner.clone()),
        None => (0, format!("process {}", lock.process).into_bytes().into()),
    };
    drop(state);
    compound.denied = Some(Box::new(Denied { lock, owner }));
    Status::LockDenied
}

/// The regular file that a lock is of.
fn file_of<P: Platform>(compound: &Compound<P>) -> Result<u64, Status> {
    let inode = compound.inode()?;
    check_regular(inode.kind())?;
    Ok(inode.fileid())
}

/// The lock owner of a LOCK: as it is, or as it would begin. Also checks that its open has the right.
fn locker<P: Platform>(
    on: &impl Operations<P>,
    compound: &Compound<P>,
    file: u64,
    locker: Locker,
    access: u8,
) -> Result<LockState, Status> {
    let client = compound.client()?;
    let service = &compound.service;
    let named = match locker {
        Locker::New { open, .. } => place(compound, open)?,
        Locker::Known(stateid) => place(compound, stateid)?,
    };
    let state = service.state();
    let (lock, share) = match locker {
        Locker::Known(_) if !named.0.is_of_locks() => return Err(Status::BadStateid),
        Locker::Known(_) => {
            let known = state.lock_states.find(client, named.0, named.1)?.clone();
            let share = state.opens.share_at(known.open).ok_or(Status::BadStateid)?;
            (known, share)
        }
        Locker::New { .. } if named.0.is_of_locks() => return Err(Status::BadStateid),
        Locker::New { owner, .. } => {
            let (opened, share) = state.opens.find(client, named.0, named.1)?;
            let owner = on.bytes(owner);
            let number = service.owner_number(client, owner);
            let (party, open) = (compound.speaker.0, named.0.place);
            (LockState { client, party, file: opened, open, owner: owner.into(), number, sequence: 0, by: 0 }, share)
        }
    };
    match () {
        () if lock.file != file => Err(Status::BadStateid),
        () if share.access & access == 0 => Err(Status::OpenMode),
        () => Ok(lock),
    }
}

/// The place of a file's locks on the host, where programs of the host are to see them. To be kept while bytes are
/// locked.
async fn on_host<P: Platform>(on: &impl Operations<P>, compound: &Compound<P>) -> Ended<Option<Arc<dyn HostLocks>>> {
    let inode = compound.inode()?;
    check_regular(inode.kind())?;
    match on.volume().try_host_locks(inode.fileid()) {
        Some(known) => Ok(known),
        None => Ok(Box::pin(on.task()?.volume.host_locks(&inode)).await?),
    }
}

pub(super) async fn lock<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: LockArguments,
    reclaims: bool,
    by: Locker,
) -> Ended {
    let _on_host = on_host(on, compound).await?;
    Ok(locked(on, compound, draft, arguments, reclaims, by)?)
}

fn locked<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: LockArguments,
    reclaims: bool,
    by: Locker,
) -> Result<(), Status> {
    let (file, client) = (file_of(compound)?, compound.client()?);
    let span = span(arguments.offset, arguments.len)?;
    check_reclaim(compound, client, reclaims)?;
    let access = if arguments.is_exclusive { Share::WRITE } else { Share::READ };
    if let Some(stateid) = compound.changed_before() {
        write_stateid(stateid, &mut draft.writer);
        compound.stateid = stateid;
        return Ok(());
    }
    let state = LockState { by: compound.mark(), ..locker(on, compound, file, by, access)? };
    let service = Arc::clone(&compound.service);
    let holder = service.state().holder(client, service.locks())?;
    let wanted = Lock { owner: lock_owner(holder, state.number), span, mode: mode(&arguments), process: 0 };
    let now = Nanos(compound.now_ns);
    let waker = waker(on, compound, &state).filter(|_| arguments.waits);
    let stateid = match service.lock(state, wanted, waker.as_ref(), now)? {
        Err(LockRefusal::Held(other)) => return Err(deny(compound, file, other)),
        Err(LockRefusal::Deadlock) => return Err(Status::Deadlock),
        Err(refusal @ (LockRefusal::Full | LockRefusal::Crowded)) => return Err(full(refusal)),
        Ok(stateid) => stateid,
    };
    write_stateid(stateid, &mut draft.writer);
    compound.stateid = stateid;
    Ok(())
}

/// The way to tell the client that it may ask again; none without a back channel.
fn waker<P: Platform>(on: &impl Operations<P>, compound: &Compound<P>, of: &LockState) -> Option<Arc<dyn LockWaker>> {
    let back = Arc::clone(&compound.taken.as_ref()?.session.back);
    let inode = compound.inode().ok()?;
    let file = on.volume().handle(&inode).as_bytes().to_vec();
    let notice = LockNotice { file, client: of.client, owner: of.owner.clone() };
    back.is_up().then(|| -> Arc<dyn LockWaker> { Arc::new(LockCall { back, notice }) })
}

pub(super) async fn test<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    arguments: LockArguments,
    owner: crate::wire::xdr::Field,
) -> Ended {
    let _on_host = on_host(on, compound).await?;
    let (file, client) = (file_of(compound)?, compound.client()?);
    let span = span(arguments.offset, arguments.len)?;
    let service = &compound.service;
    if service.is_in_grace(compound.now_ns) {
        // A lock may be in the way that its client has not asked for again.
        return Err(Status::Grace.into());
    }
    let number = service.owner_number(client, on.bytes(owner));
    let holder = service.state().holder(client, service.locks())?;
    let wanted = Lock { owner: lock_owner(holder, number), span, mode: mode(&arguments), process: 0 };
    match service.locks().conflict(file, &wanted, Nanos(compound.now_ns)) {
        None => Ok(()),
        Some(other) => Err(deny(compound, file, other).into()),
    }
}

/// A client's lock owner with this stateid.
fn named<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(StatePlace, LockState), Status> {
    let (at, sequence) = place(compound, stateid)?;
    if !at.is_of_locks() {
        return Err(Status::BadStateid);
    }
    let found = compound.service.state().lock_states.find(compound.client()?, at, sequence)?.clone();
    Ok((at, found))
}

pub(super) fn unlock<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    (offset, len): (u64, u64),
) -> Result<(), Status> {
    let file = file_of(compound)?;
    let span = span(offset, len)?;
    let stateid = match compound.changed_before() {
        Some(stateid) => stateid,
        None => {
            let (at, state) = named(compound, stateid)?;
            if state.file != file {
                return Err(Status::BadStateid);
            }
            let state = LockState { by: compound.mark(), ..state };
            compound.service.unlock(&state, at, span, Nanos(compound.now_ns))?
        }
    };
    write_stateid(stateid, &mut draft.writer);
    compound.stateid = stateid;
    Ok(())
}

/// FREE_STATEID: a lock owner without locks has no stateid any more. CLOSE closes an open.
pub(super) fn free<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(), Status> {
    let (at, sequence) = place(compound, stateid)?;
    if !at.is_of_locks() {
        let open = compound.service.state().opens.find(compound.client()?, at, sequence);
        return open.and(Err(Status::LocksHeld));
    }
    let freed = named(compound, stateid).and_then(|(at, state)| compound.service.free(&state, at));
    compound.ended_before(freed)
}

impl<P: Platform> Service<P> {
    fn free(&self, of: &LockState, at: StatePlace) -> Result<(), Status> {
        let mut state = self.state();
        let holder = *state.holders.get(&of.client).ok_or(Status::BadStateid)?;
        if self.locks().has(of.file, lock_owner(holder, of.number)) {
            return Err(Status::LocksHeld);
        }
        state.lock_states.end(at.place);
        Ok(())
    }
}
