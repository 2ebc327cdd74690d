//! Locks of bytes by clients: the state of a lock owner and the volume's lock, changed together.
//!
//! Owns: the order of the checks of a LOCK and a LOCKU, the pair of both changes, before and after a question to the
//! host; the lock that conflicts with a refused one, in the form for a client.
//! Does not own: lock owners and opens (`state`), conflicts and the queue (the volume), the operations
//! (`operations::locks`).
//! Invariants: both changes happen under the lock of the state, which is taken once. A lock that the host has to allow
//! gets its stateid after the answer, if the client and its open are still there. Where a stateid is given, the volume
//! has the lock. A lock without an end has the length of all ones on the wire.

use std::sync::Arc;

use afflux_frontend::Party;
use afflux_volume::{
    Held, HostQuestion, Lock, LockMode, LockOwner, LockRefusal, LockWaker, Nanos, Platform, Share, Span,
};

use crate::status::NfsStatus;
use crate::v4::back_channel::{BackChannel, LockCall, LockNotice};
use crate::v4::client_state::{State, StateTable, lock_owner};
use crate::v4::service::Service;
use crate::v4::state::lock_states::{LockState, RangesAfter};
use crate::v4::state::persisted::{RangeStep, Record};
use crate::v4::state::quota::TableFull;
use crate::v4::state::stateids::{Stateid, StateidOther};
use crate::wire::xdr::Writer;

/// The owner of a LOCK, by its stateid and the number of that.
#[derive(Clone, Copy)]
pub(super) enum LockBy<'a> {
    /// An owner that has a stateid.
    ExistLockOwner((StateidOther, u32)),
    /// The client's name for an owner, and its open.
    OpenToLockOwner { open: (StateidOther, u32), owner: &'a [u8] },
}

/// A LOCK of bytes of a file.
pub(super) struct LockRequest<'a> {
    pub(super) clientid: u64,
    pub(super) party: Party,
    pub(super) file: u64,
    pub(super) by: LockBy<'a>,
    pub(super) span: Span,
    pub(super) mode: LockMode,
    /// The client had the lock of an earlier server.
    pub(super) reclaims: bool,
    /// The operation, for a repetition after a kill.
    pub(super) mark: u64,
    /// The host was asked for it, and has answered.
    pub(super) asked: Option<HostQuestion>,
}

/// A LOCKU of bytes of a file.
pub(super) struct UnlockRequest {
    pub(super) clientid: u64,
    pub(super) file: u64,
    /// The `other` and the seqid of the lock owner's stateid.
    pub(super) at: StateidOther,
    pub(super) seqid: u32,
    pub(super) span: Span,
    /// The operation, for a repetition after a kill.
    pub(super) mark: u64,
}

/// The lock owner that a LOCK means.
struct FoundLockOwner<'a> {
    /// The id of its open.
    open: u32,
    /// The number that the volume has for it.
    number: u64,
    /// Its own id, if it has one.
    id: Option<u32>,
    /// The client's name for it, if it may be new.
    owner: &'a [u8],
}

impl<P: Platform> Service<P> {
    /// The lock owner of a request, whose open has the right.
    fn find_lock_owner<'a>(
        &self,
        state: &State<Option<Held<P>>>,
        of: &LockRequest<'a>,
    ) -> Result<FoundLockOwner<'a>, NfsStatus> {
        let (file, share, locker) = match of.by {
            LockBy::ExistLockOwner((at, seqid)) => {
                // Other calls of the owner may have counted on while the host was asked.
                let seqid = if of.asked.is_some() { 0 } else { seqid };
                let known = state.lock_states.find(of.clientid, at, seqid)?;
                let share = state.opens.share_at(known.open).ok_or(NfsStatus::BadStateid)?;
                let id = Some(at.id);
                (known.file, share, FoundLockOwner { open: known.open, number: known.number, id, owner: &[] })
            }
            LockBy::OpenToLockOwner { open: (at, seqid), owner } => {
                let (file, share) = state.opens.find(of.clientid, at, seqid)?;
                let number = self.owner_id(of.clientid, owner);
                let id = state.lock_states.id_of(file, number);
                (file, share, FoundLockOwner { open: at.id, number, id, owner })
            }
        };
        let access = if of.mode == LockMode::Exclusive { Share::WRITE } else { Share::READ };
        match () {
            () if file != of.file => Err(NfsStatus::BadStateid),
            () if share.access & access == 0 => Err(NfsStatus::Openmode),
            () => Ok(locker),
        }
    }

    /// Locks bytes of a file for a lock owner, or ends its question to the host. A refused one waits if `way` names a
    /// path for its notice: a session, and the file's handle.
    pub(super) fn lock(
        &self,
        request: &LockRequest<'_>,
        way: Option<(&Arc<BackChannel>, Vec<u8>)>,
        now: Nanos,
    ) -> Result<Result<Stateid, LockRefusal>, NfsStatus> {
        // Dropped after the lock.
        let mut ended = Vec::new();
        let mut state = self.state();
        let LockRequest { clientid, party, file, span, mode, reclaims, mark, asked, .. } = *request;
        let FoundLockOwner { open, number, id, owner: name } = self.find_lock_owner(&state, request)?;
        let owner = lock_owner(state.holder(clientid, self.locks())?, number);
        let evicted = state.evict_for(party, StateTable::LockStates, self.locks(), now.0, &mut ended, |state, _| {
            // A change makes two ranges more at most.
            state.lock_states.check_quota(id, party, name, || self.locks().count_of(file, owner) + 2)
        });
        self.keep_list(&mut state);
        evicted?;
        let wanted = Lock { owner, span, mode, process: 0 };
        let known = id.and_then(|id| state.lock_states.at(id));
        let name_of = known.map_or(name, |known| &known.owner);
        let wait = way.map(|(back, file)| {
            let notice = LockNotice { file, clientid, owner: name_of.into(), wait: state.waits.begin(party) };
            Arc::new(LockCall { notices: Arc::clone(back.notices()), open, notice })
        });
        let waker = wait.clone().map(|wait| -> Arc<dyn LockWaker> { wait });
        let take = || match &waker {
            _ if reclaims => self.locks().reclaim(file, wanted, now),
            Some(waker) => self.locks().lock_or_wait(file, wanted, waker, now),
            None => self.locks().lock(file, wanted, now),
        };
        let mut result = match asked {
            // The call may have begun long ago.
            Some(question) => {
                let now = self.volume.engine().platform().now();
                self.locks().finish(file, question, waker.as_ref(), now)
            }
            None => take(),
        };
        if let Err(LockRefusal::Ending(_)) = result {
            // Without a list of clients the silent one has ended now.
            self.end_revoked_of(&mut state, &mut ended);
            result = take();
        }
        if let (Err(LockRefusal::Held(_)), Some(LockCall { notice, .. })) = (&result, wait.as_deref()) {
            let record = Record::Wait { clientid, open, owner: &notice.owner, span, mode };
            state.waits.keep(&notice.wait, &record);
        }
        Ok(result.map(|()| {
            self.with_ranges(file, owner, (span, Some(mode)), |ranges| match id {
                Some(id) => state.lock_states.changed(id, mark, ranges),
                None => {
                    let (owner, by) = (name.into(), mark);
                    let new = LockState { clientid, party, file, open, owner, number, seqid: 0, by };
                    state.lock_states.begin(new, ranges)
                }
            })
        }))
    }

    /// Unlocks bytes of a file for a lock owner. None while the host is asked for a lock of that
    /// owner: a later server repeats the steps of an owner in their order.
    pub(super) fn unlock(&self, request: &UnlockRequest, now: Nanos) -> Result<Option<Stateid>, NfsStatus> {
        let UnlockRequest { clientid, file, at, seqid, span, mark } = *request;
        // Dropped after the lock.
        let mut ended = Vec::new();
        let mut state = self.state();
        let known = state.lock_states.find(clientid, at, seqid)?;
        if known.file != file {
            return Err(NfsStatus::BadStateid);
        }
        let (party, number) = (known.party, known.number);
        let owner = lock_owner(*state.holders.get(&clientid).ok_or(NfsStatus::BadStateid)?, number);
        if self.locks().is_asked_for(file, owner) {
            return Ok(None);
        }
        let evicted = state.evict_for(party, StateTable::LockStates, self.locks(), now.0, &mut ended, |state, _| {
            // A hole makes one range more.
            state.lock_states.check_quota(Some(at.id), party, &[], || self.locks().count_of(file, owner) + 1)
        });
        self.keep_list(&mut state);
        evicted?;
        self.locks().unlock(file, owner, span, now).map_err(full)?;
        let changed = |ranges: &RangesAfter<'_>| state.lock_states.changed(at.id, mark, ranges);
        Ok(Some(self.with_ranges(file, owner, (span, None), changed)))
    }

    /// Passes on an owner's ranges after a step.
    fn with_ranges<T>(
        &self,
        file: u64,
        owner: LockOwner,
        step: RangeStep,
        to: impl FnOnce(&RangesAfter<'_>) -> T,
    ) -> T {
        let (count, all) = (|| self.locks().count_of(file, owner), || self.locks().ranges_of(file, owner));
        to(&RangesAfter { step, count: &count, all: &all })
    }

    /// Ends a lock owner without locks. It does not wait for any, either.
    pub(super) fn free(&self, clientid: u64, at: StateidOther, seqid: u32, now: Nanos) -> Result<(), NfsStatus> {
        let mut state = self.state();
        let known = state.lock_states.find(clientid, at, seqid)?;
        let (file, number) = (known.file, known.number);
        let holder = *state.holders.get(&clientid).ok_or(NfsStatus::BadStateid)?;
        let owner = lock_owner(holder, number);
        if self.locks().has(file, owner) {
            return Err(NfsStatus::LocksHeld);
        }
        self.locks().stop_waiting(file, owner, now);
        state.lock_states.end(at.id);
        Ok(())
    }
}

/// The error of a lock for which the table has no free range.
pub(super) fn full(refusal: LockRefusal) -> NfsStatus {
    match refusal {
        LockRefusal::Full => TableFull::OfParty.status(),
        // A silent client is evicted.
        LockRefusal::Ending(_) => NfsStatus::Delay,
        _ => TableFull::Even.status(),
    }
}

/// The lock that conflicts with a refused one.
pub(super) struct Denied {
    pub(super) lock: Lock,
    /// The client and its name for the owner, if it is one of version 4.
    pub(super) owner: (u64, Box<[u8]>),
}

impl Denied {
    /// Writes what follows the status.
    pub(super) fn write(&self, writer: &mut Writer) {
        const READ: u32 = 1;
        const WRITE: u32 = 2;
        writer.u64(self.lock.span.first());
        writer.u64(self.lock.span.length());
        writer.u32(if self.lock.mode == LockMode::Exclusive { WRITE } else { READ });
        writer.u64(self.owner.0);
        writer.opaque(&self.owner.1);
    }
}
