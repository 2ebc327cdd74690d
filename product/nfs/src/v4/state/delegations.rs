//! The read delegations of clients: a client reads a file from its own cache until the server recalls the delegation
//! (RFC 8881, section 10.4).
//!
//! Owns: the table of delegations, their stateids, their bounds; the moments at which one is persisted for a later
//! server; how far a recall has come.
//! Does not own: the choice of files (`operations::opens`), changes that conflict and the time limit of a recall (the
//! volume), the call to the client (`back_channel`).
//! Invariants: a client has one delegation of a file. Its stateid works for this client alone, and its seqid stays 1.
//! There are at most [`DELEGATIONS_MAX`], and [`DELEGATIONS_OF_CLIENT_MAX`] of a client; each party has its quota
//! (`quota`), and takes no memory that opens would need (`ServerMemory::check_spare`). A revoked delegation stays, and
//! its client is told with each SEQUENCE, until the client frees its stateid
//! (`a_revoked_delegation_stays_until_it_is_freed`). It is persisted as revoked before the change that it delayed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::{Party, PersistedItem};
use afflux_volume::{DelegationHolder, Nanos};

use super::super::back_channel::{LockNotices, RecallCall};
use super::leases::Lease;
use super::persisted::{Memory, Record, delegation_bytes};
use super::quota::TableFull;
use super::stateids::{Stateid, StateidOther, check_seqid};
use crate::status::NfsStatus;
use crate::v4::state::stateids::{StateIndex, StateKeys, StateidTable};
use crate::wire::xdr::Writer;

/// Most delegations of all clients.
pub(crate) const DELEGATIONS_MAX: usize = 32_768;
/// Most delegations of one client.
pub(crate) const DELEGATIONS_OF_CLIENT_MAX: usize = 8_192;
/// The first id: those of opens are below, those of lock owners from the double on.
const FIRST_ID: u32 = 1 << 30;

impl StateidOther {
    /// Whether it is a delegation's.
    pub(crate) fn is_of_delegations(self) -> bool {
        self.id & !(FIRST_ID - 1) == FIRST_ID
    }
}

/// How far the recall has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecallStep {
    /// Nobody wants it back, or the client has refused the last call.
    None,
    /// The call waits, or is under way.
    Called,
    /// The client has promised to return it.
    Answered,
}

struct Progress {
    item: PersistedItem,
    recall: RecallStep,
    is_revoked: bool,
    /// The client has returned or freed it, or is gone.
    has_ended: bool,
}

/// The client and the file of a new delegation.
#[derive(Clone, Copy)]
pub(crate) struct Delegate<'a> {
    pub(crate) clientid: u64,
    pub(crate) party: Party,
    pub(crate) file: u64,
    /// The file's handle.
    pub(crate) handle: &'a [u8],
    pub(crate) lease: &'a Arc<Lease>,
    /// The client's calls.
    pub(crate) calls: &'a Arc<LockNotices>,
}

/// A client's delegation of a file.
pub(crate) struct Delegation {
    pub(crate) clientid: u64,
    pub(crate) party: Party,
    pub(crate) file: u64,
    pub(crate) stateid: Stateid,
    handle: Box<[u8]>,
    id: u32,
    generation: u32,
    lease: Arc<Lease>,
    calls: Arc<LockNotices>,
    memory: Memory,
    /// The lock is a leaf, but for the memory's.
    progress: Mutex<Progress>,
}

impl Delegation {
    fn new(to: Delegate<'_>, memory: &Memory, (id, generation): (u32, u32), stateid: Stateid) -> Self {
        let progress =
            Progress { item: PersistedItem::default(), recall: RecallStep::None, is_revoked: false, has_ended: false };
        Self {
            clientid: to.clientid,
            party: to.party,
            file: to.file,
            stateid,
            handle: to.handle.into(),
            id,
            generation,
            lease: Arc::clone(to.lease),
            calls: Arc::clone(to.calls),
            memory: Memory::clone(memory),
            progress: Mutex::new(progress),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All delegations of a client end together.
    fn keys(&self) -> StateKeys {
        StateKeys { owner: (self.file, self.clientid), group: self.clientid, party: self.party }
    }

    fn keep(&self, progress: &mut Progress) {
        let Self { clientid, file, generation, ref handle, .. } = *self;
        let record = Record::Delegation { clientid, file, generation, is_revoked: progress.is_revoked, handle };
        self.memory.put(self.id, &mut progress.item, self.party, &record);
    }

    /// Whether the client has lost it.
    pub(crate) fn is_revoked(&self) -> bool {
        self.lock().is_revoked
    }

    /// Whether the server wants it back.
    pub(crate) fn is_recalled(&self) -> bool {
        self.lock().recall != RecallStep::None
    }

    fn end(&self) {
        let mut progress = self.lock();
        if !std::mem::replace(&mut progress.has_ended, true) {
            self.memory.remove(&mut progress.item, self.party);
            if progress.is_revoked {
                self.lease.note_freed();
            }
        }
    }
}

impl DelegationHolder for Delegation {
    fn recall(self: Arc<Self>) {
        let mut progress = self.lock();
        if progress.recall == RecallStep::None && !progress.has_ended {
            progress.recall = RecallStep::Called;
            drop(progress);
            let calls = Arc::clone(&self.calls);
            calls.recall(self);
        }
    }

    fn has_lapsed(&self, now: Nanos) -> bool {
        self.lease.has_ended(now.0) || self.lock().has_ended
    }

    fn revoke(&self) {
        let mut progress = self.lock();
        if !progress.has_ended && !std::mem::replace(&mut progress.is_revoked, true) {
            self.lease.note_revoked();
            self.keep(&mut progress);
        }
    }
}

impl RecallCall for Delegation {
    fn write(&self, writer: &mut Writer) {
        writer.u32(self.stateid.seqid);
        writer.raw(&self.stateid.other);
        // The file is not about to be truncated, as far as that is known.
        writer.bool(false);
        writer.opaque(&self.handle);
    }

    fn answered(&self, is_known: bool) {
        // A call may come before the reply that grants the delegation: a waiting change recalls again.
        self.lock().recall = if is_known { RecallStep::Answered } else { RecallStep::None };
    }
}

/// The delegations of all clients.
pub(crate) struct ClientDelegations {
    memory: Memory,
    table: StateidTable<Arc<Delegation>>,
    index: StateIndex,
}

impl ClientDelegations {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        let (table, memory) = (StateidTable::new(memory, FIRST_ID), Memory::clone(memory));
        Self { memory, table, index: StateIndex::default() }
    }

    /// Whether a client has any, revoked ones with them.
    pub(crate) fn has_any(&self, clientid: u64) -> bool {
        self.index.has_group(clientid)
    }

    /// The number of a client's delegations, revoked ones with them.
    pub(crate) fn count_of(&self, clientid: u64) -> usize {
        self.index.count_of(clientid)
    }

    /// The delegations of a client.
    pub(crate) fn of_client(&self, clientid: u64) -> impl Iterator<Item = &Arc<Delegation>> {
        self.index.of_group(clientid).filter_map(|id| self.table.get(id))
    }

    /// A client's delegation of a file.
    pub(crate) fn of_file(&self, file: u64, clientid: u64) -> Option<&Arc<Delegation>> {
        self.table.get(self.index.of_owner(file, clientid)?)
    }

    /// An error if the quota does not allow one more.
    pub(crate) fn check_quota(&self, to: &Delegate<'_>) -> Result<(), TableFull> {
        if self.index.count_of(to.clientid) >= DELEGATIONS_OF_CLIENT_MAX {
            return Err(TableFull::OfParty);
        }
        self.index.counts().check_quota(to.party, 1, DELEGATIONS_MAX)?;
        self.memory.check_spare(to.party, delegation_bytes(to.handle))
    }

    /// Makes a delegation if `grant` does. The caller has checked the quota, and that the client has none of the file.
    pub(crate) fn try_make(
        &mut self,
        to: Delegate<'_>,
        grant: impl FnOnce(&Arc<Delegation>) -> bool,
    ) -> Option<Arc<Delegation>> {
        let id = self.table.next();
        let entry = (id, self.table.generation(id));
        let made = Arc::new(Delegation::new(to, &self.memory, entry, self.table.stateid(id, 1)));
        if !grant(&made) {
            return None;
        }
        made.keep(&mut made.lock());
        self.table.insert(Arc::clone(&made));
        self.index.insert(id, made.keys());
        Some(made)
    }

    /// Puts a delegation of an earlier server in its entry. False if it cannot be there. To be followed by
    /// [`ClientDelegations::restored`].
    pub(crate) fn try_restore(&mut self, id: u32, to: Delegate<'_>, record: &Record<'_>, item: PersistedItem) -> bool {
        let Record::Delegation { generation, is_revoked, .. } = *record else { return false };
        self.memory.found(&item, to.party);
        let at = StateidOther { memory: self.memory.number, id, generation };
        let made = Arc::new(Delegation::new(to, &self.memory, (id, generation), Stateid::of(at, 1)));
        let mut progress = made.lock();
        (progress.item, progress.is_revoked) = (item, is_revoked);
        drop(progress);
        if is_revoked {
            made.lease.note_revoked();
        }
        let keys = made.keys();
        let is_one = self.index.of_owner(keys.owner.0, keys.owner.1).is_none()
            && self.table.try_restore(id, generation, made, DELEGATIONS_MAX);
        if is_one {
            self.index.insert(id, keys);
        }
        is_one
    }

    /// All delegations of an earlier server are in their entries.
    pub(crate) fn restored(&mut self) {
        self.table.restored();
    }

    /// All delegations.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Delegation>> {
        self.table.all()
    }

    /// A client's delegation with this stateid, also a revoked one.
    fn named(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<&Arc<Delegation>, NfsStatus> {
        let known = self.table.named(at)?;
        if known.clientid != clientid {
            return Err(NfsStatus::BadStateid);
        }
        check_seqid(seqid, known.stateid.seqid)?;
        Ok(known)
    }

    /// A client's delegation with this stateid.
    pub(crate) fn find(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<&Arc<Delegation>, NfsStatus> {
        let known = self.named(clientid, at, seqid)?;
        if known.is_revoked() { Err(NfsStatus::DelegRevoked) } else { Ok(known) }
    }

    /// A client's revoked delegation with this stateid.
    pub(crate) fn find_revoked(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<u32, NfsStatus> {
        match self.named(clientid, at, seqid)? {
            known if known.is_revoked() => Ok(known.id),
            _ => Err(NfsStatus::LocksHeld),
        }
    }

    /// The id of the first delegation of a client.
    pub(crate) fn first_of(&self, clientid: u64) -> Option<u32> {
        self.index.of_group(clientid).next()
    }

    /// Ends the delegation with an id. The caller ends it in the volume, too.
    pub(crate) fn end(&mut self, id: u32) -> Option<Arc<Delegation>> {
        let ended = self.table.take(id)?;
        self.index.remove(id, ended.keys());
        ended.end();
        Some(ended)
    }
}

#[cfg(test)]
mod tests;
