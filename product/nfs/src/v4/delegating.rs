//! Granting, returning and freeing delegations: the steps over the state and the volume.
//!
//! Owns: which OPEN gets a delegation, and why another gets none; the order of table and volume.
//! Does not own: the table (`state::delegations`), conflicts and recalls (the volume), the bytes of OPEN's result
//! (`operations::opens`).
//! Invariants: a delegation is granted under the lock of the state, and so is an open for writing: neither comes
//! between the other's check and its entry (`an_open_for_writing_recalls_the_delegation_of_another_client`). No
//! delegation without a back channel that has carried a call. A file that was changed a moment ago gets none for
//! [`QUIET_NS`]: it will be changed again.

use std::sync::Arc;

use afflux_volume::{DelegationHolder, Inode, Nanos, Platform};

use super::service::Service;
use super::state::delegations::{Delegate, Delegation};
use super::state::sessions::Session;
use super::state::stateids::StateidOther;
use crate::status::NfsStatus;

/// How long after a change a file gets no delegation. knfsd's filter of recalled files has 30 to 60 s.
pub(super) const QUIET_NS: u64 = 10 * Nanos::SECOND;

/// A client's wish about a delegation, in the share access of its OPEN (RFC 8881, section 18.16.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DelegationWish {
    /// The client does not say.
    None,
    /// For reading, or of any kind.
    Read,
    /// For writing alone, which this server does not have.
    Write,
    NotWanted,
    /// An earlier wish is taken back.
    Cancelled,
}

impl DelegationWish {
    pub(super) fn of(share_access: u32) -> Self {
        match share_access >> 8 & 0xff {
            1 | 3 => Self::Read,
            2 => Self::Write,
            4 => Self::NotWanted,
            5 => Self::Cancelled,
            _ => Self::None,
        }
    }
}

/// Why an OPEN gets no delegation (`why_no_delegation4`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoDelegation {
    NotWanted,
    /// Others use the file in a way that conflicts, or did so lately.
    Contention,
    /// No entry is free, the back channel is not up, or this server grants none.
    Resource,
    /// This server has no delegations for writing.
    WriteUnsupported,
    Cancelled,
}

impl NoDelegation {
    /// Its number on the wire.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::NotWanted => 0,
            Self::Contention => 1,
            Self::Resource => 2,
            Self::WriteUnsupported => 4,
            Self::Cancelled => 7,
        }
    }
}

impl<P: Platform> Service<P> {
    /// Whether clients get delegations.
    pub(super) fn delegates(&self) -> bool {
        self.volume.delegations().are_on()
    }

    /// Delegates a file to the client of a session for reading. The caller has granted the client an open of the file.
    /// With `reclaims`, an earlier server has delegated the file.
    pub(super) fn delegate(
        &self,
        session: &Session,
        inode: &Inode<P>,
        reclaims: bool,
    ) -> Result<Arc<Delegation>, NoDelegation> {
        if !self.delegates() || !(session.back.try_prove() || reclaims && session.back.is_up()) {
            return Err(NoDelegation::Resource);
        }
        let (handle, file, clientid) = (self.volume.handle(inode), inode.fileid(), session.clientid);
        let mut state = self.state();
        if state.delegations.of_file(file, clientid).is_some() {
            return Err(NoDelegation::Resource);
        }
        let calls = Arc::clone(state.sessions.notices_of(clientid));
        let to = Delegate {
            clientid,
            party: session.party,
            file,
            handle: handle.as_bytes(),
            lease: &session.lease,
            calls: &calls,
        };
        state.delegations.check_quota(&to).map_err(|_| NoDelegation::Resource)?;
        let quiet_ns = if reclaims { 0 } else { QUIET_NS };
        let grant = |made: &Arc<Delegation>| {
            let holder: Arc<dyn DelegationHolder> = Arc::clone(made) as _;
            self.volume.delegations().try_grant(file, clientid, holder, || self.volume.may_delegate(inode, quiet_ns))
        };
        state.delegations.try_make(to, grant).ok_or(NoDelegation::Contention)
    }

    /// The delegation of a file that a client has already, unless the server wants it back.
    pub(super) fn delegated(&self, clientid: u64, file: u64) -> Option<Arc<Delegation>> {
        let state = self.state();
        state.delegations.of_file(file, clientid).filter(|it| !it.is_recalled() && !it.is_revoked()).cloned()
    }

    /// A client returns its delegation of a file.
    pub(super) fn return_delegation(
        &self,
        clientid: u64,
        at: StateidOther,
        seqid: u32,
        file: u64,
    ) -> Result<(), NfsStatus> {
        let mut state = self.state();
        let known = state.delegations.find(clientid, at, seqid)?;
        if known.file != file {
            return Err(NfsStatus::BadStateid);
        }
        state.end_delegation(at.id);
        Ok(())
    }

    /// A client knows that its delegation was revoked.
    pub(super) fn free_revoked(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<(), NfsStatus> {
        let mut state = self.state();
        let id = state.delegations.find_revoked(clientid, at, seqid)?;
        state.end_delegation(id);
        Ok(())
    }
}
