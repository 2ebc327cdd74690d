//! The state of all clients together.
//!
//! Owns: the tables together, the end of a client with all that it has, the eviction for one more entry of a party, the
//! state that the party with most gives up for this.
//! Does not own: the rules of each table (`state`), the lock around them (`service`), locks and share reservations (the
//! volume).
//! Invariants: a client whose lease has ended gives up its state before another client is refused for want of a free
//! entry. A living client gives up state only if no entry is free and its party has most: a session, or an open. One
//! call ends [`ENDS_MAX`] pieces of state; a task ends the rest. The caller gets the holders of files, and drops them
//! without a lock.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use afflux_frontend::{Party, PersistedItem};
use afflux_volume::{HolderId, LockFamily, LockHolder, LockOwner, Locks, Nanos, Span};
use siphasher::sip::SipHasher13;

use super::grace::Grace;
use super::state::clients::Clients;
use super::state::delegations::ClientDelegations;
use super::state::leases::Lease;
use super::state::lock_states::LockStates;
use super::state::opens::{HeldFile, Opener, Opens};
use super::state::persisted::{Memory, Record};
use super::state::quota::TableFull;
use super::state::sessions::Sessions;
use crate::status::NfsStatus;
use crate::v4::state::leases::Revocations;
use crate::v4::state::persisted::PersistedWaits;

/// Most opens, and locks of them, that one call ends.
pub(super) const ENDS_MAX: usize = 256;
/// The search for a silent client, and its end without the opens, count as so many.
const ENDS_FOR_A_CLIENT: usize = 16;

/// The state of all clients.
pub(super) struct State<H> {
    pub(super) memory: Memory,
    /// The facts about this server for a later one.
    pub(super) server_item: PersistedItem,
    pub(super) clients: Clients,
    pub(super) sessions: Sessions,
    pub(super) opens: Opens<H>,
    pub(super) lock_states: LockStates,
    pub(super) delegations: ClientDelegations,
    /// The volume's side of them.
    pub(super) grants: Arc<afflux_volume::Delegations>,
    pub(super) waits: PersistedWaits,
    /// The clients as the volume's holders of locks, from their first open on.
    pub(super) holders: BTreeMap<u64, HolderId>,
    pub(super) grace: Grace,
    /// Holders of locks whose clients have ended. They have their locks until the list is persisted.
    pub(super) ending: Vec<HolderId>,
    /// Clients that have ended and still have opens or delegations, which nobody can use.
    ended: VecDeque<u64>,
    /// A task ends these opens.
    pub(super) is_ending: bool,
    /// Leases that were revoked because others want the clients' locks.
    pub(super) revocations: Arc<Revocations>,
}

/// A table that needs a free entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StateTable {
    Sessions,
    Opens,
    LockStates,
}

/// The holder of locks that a living client is, all locks, and the time.
type OfVolume<'a> = (HolderId, &'a Locks, u64);

/// A client as a holder of locks.
struct LockingClient {
    clientid: u64,
    lease: Arc<Lease>,
    name: String,
    revocations: Arc<Revocations>,
}

impl LockHolder for LockingClient {
    fn has_lapsed(&self, now: Nanos) -> bool {
        self.lease.has_ended(now.0)
    }

    fn try_revoke(&self, now: Nanos) -> bool {
        if self.lease.try_revoke_ended(now.0) {
            self.revocations.begin(self.clientid);
        }
        self.lease.is_revoked()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl<H> State<H> {
    pub(super) fn new(memory: &Memory) -> Self {
        Self {
            memory: Memory::clone(memory),
            server_item: PersistedItem::default(),
            clients: Clients::new(memory),
            sessions: Sessions::new(memory),
            opens: Opens::new(memory),
            lock_states: LockStates::new(memory),
            delegations: ClientDelegations::new(memory),
            grants: Arc::default(),
            waits: PersistedWaits::new(memory),
            holders: BTreeMap::new(),
            grace: Grace::new(Vec::new(), 0),
            ending: Vec::new(),
            ended: VecDeque::new(),
            is_ending: false,
            revocations: Arc::default(),
        }
    }

    /// Persists what a later server has to know of this one.
    pub(super) fn keep_server(&mut self) {
        let record = Record::Server {
            memory: self.memory.number,
            run: self.memory.run,
            next_client: self.clients.next(),
            is_grace_over: self.grace.missing() == 0,
        };
        self.memory.put(0, &mut self.server_item, Party::ROOT, &record);
    }

    /// Whether a client has neither sessions nor opens nor delegations.
    pub(super) fn is_idle(&self, clientid: u64) -> bool {
        !self.sessions.has_any(clientid) && !self.opens.has_any(clientid) && !self.delegations.has_any(clientid)
    }

    /// Ends the delegation with an id, also in the volume.
    pub(super) fn end_delegation(&mut self, id: u32) {
        if let Some(ended) = self.delegations.end(id) {
            self.grants.end(ended.file, ended.clientid);
        }
    }

    /// The share reservation of an owner's open of a file.
    pub(super) fn share_of(&self, by: &Opener<'_>, file: u64) -> Option<(HolderId, u64)> {
        let id = self.opens.id_of_owner(by, file)?;
        Some((*self.holders.get(&by.clientid)?, u64::from(id)))
    }

    /// A client as a holder of locks.
    pub(super) fn holder(&mut self, clientid: u64, locks: &Locks) -> Result<HolderId, NfsStatus> {
        if let Some(holder) = self.holders.get(&clientid) {
            return Ok(*holder);
        }
        let lease = self.clients.lease(clientid).cloned().ok_or(NfsStatus::StaleClientid)?;
        let (party, name) = self.clients.named_for_people(clientid).ok_or(NfsStatus::StaleClientid)?;
        // The bound of all clients of a party.
        let mut group = SipHasher13::new();
        party.hash(&mut group);
        let revocations = Arc::clone(&self.revocations);
        let holder = locks.register(Arc::new(LockingClient { clientid, lease, name, revocations }), group.finish());
        self.holders.insert(clientid, holder);
        Ok(holder)
    }

    /// Frees an entry of a table for one more of a party. As long as `check` finds none, a silent client ends: one of
    /// the party if the party has used up its quota, or one of the party with most. Without a silent one the party with
    /// most gives up an entry. A client whose entry takes more than [`ENDS_MAX`] ends comes again. The function adds
    /// the holders of files; `check` gets their number.
    pub(super) fn evict_for(
        &mut self,
        party: Party,
        table: StateTable,
        locks: &Locks,
        now_ns: u64,
        held: &mut Vec<H>,
        check: impl Fn(&Self, usize) -> Result<(), TableFull>,
    ) -> Result<(), NfsStatus> {
        let mut left = ENDS_MAX;
        while let Err(lack) = check(self, held.len()) {
            if left == 0 {
                return Err(NfsStatus::Delay);
            }
            left -= 1;
            if self.has_ended() {
                self.end_some(&mut left, held);
                continue;
            }
            let whose = match lack {
                TableFull::OfParty => Some(party),
                TableFull::OfAll { most } => Some(most),
                TableFull::Even => None,
            };
            if let Some(silent) = self.clients.end_silent(whose, now_ns) {
                self.begin_ends(&[silent], locks);
                left = left.saturating_sub(ENDS_FOR_A_CLIENT);
                continue;
            }
            match lack {
                TableFull::OfAll { most } if self.try_take_one(most, table, locks, now_ns, held, &mut left) => {}
                _ => return Err(lack.status()),
            }
        }
        Ok(())
    }

    /// A party gives up an entry of this table, or of another table, or `left` locks of it. The result is false if the
    /// party has nothing.
    fn try_take_one(
        &mut self,
        of: Party,
        table: StateTable,
        locks: &Locks,
        now_ns: u64,
        held: &mut Vec<H>,
        left: &mut usize,
    ) -> bool {
        if table == StateTable::Sessions && self.sessions.try_end_one_of(of) {
            return true;
        }
        let of_locks = if table == StateTable::LockStates { self.lock_states.open_of_party(of) } else { None };
        match of_locks.or_else(|| self.opens.one_of_party(of)) {
            Some(id) => {
                let holder = self.opens.client_at(id).and_then(|clientid| self.holders.get(&clientid).copied());
                held.extend(self.end_open(id, holder.map(|holder| (holder, locks, now_ns)), left));
                true
            }
            None => self.sessions.try_end_one_of(of),
        }
    }

    /// Ends the open with an id, with the open's locks. The client gets an error when it uses the open. None if there
    /// were more than `left` locks; `left` goes down by the number of those that have ended.
    pub(super) fn end_open(&mut self, id: u32, of: Option<OfVolume<'_>>, left: &mut usize) -> Option<H> {
        if !self.try_end_locks(id, of, left) {
            return None;
        }
        let HeldFile { file, held } = self.opens.end(id)?;
        if let Some((holder, locks, now_ns)) = of {
            locks.stop_waiting_with(file, (holder, u64::from(id)), Nanos(now_ns));
            locks.end_share(file, (holder, u64::from(id)));
        }
        Some(held)
    }

    /// Ends the lock owners that were begun with an open, with their locks. False if more than `left` were to end.
    fn try_end_locks(&mut self, open: u32, of: Option<OfVolume<'_>>, left: &mut usize) -> bool {
        while let Some(id) = self.lock_states.first_of_open(open) {
            if *left == 0 {
                return false;
            }
            *left -= 1;
            if let (Some(state), Some((holder, locks, now_ns))) = (self.lock_states.end(id), of) {
                let owner = lock_owner(holder, state.number);
                *left = left.saturating_sub(locks.count_of(state.file, owner));
                // Unlocking the whole file needs no further range.
                let _ = locks.unlock(state.file, owner, Span::WHOLE, Nanos(now_ns));
            }
        }
        true
    }

    /// Ends all that these clients had, some of it later. Returns what held files, to be dropped without the lock.
    pub(super) fn end_all(&mut self, clients: &[u64], locks: &Locks) -> Vec<H> {
        let mut holders = Vec::new();
        self.begin_ends(clients, locks);
        self.end_some(&mut { ENDS_MAX }, &mut holders);
        holders
    }

    /// These clients have ended: [`State::end_some`] ends the opens. Others get the locks of the clients once the list
    /// without the clients is persisted.
    fn begin_ends(&mut self, clients: &[u64], locks: &Locks) {
        self.grace.remove(clients);
        for clientid in clients {
            self.sessions.end_all(*clientid);
            if let Some(holder) = self.holders.remove(clientid) {
                locks.begin_end(holder);
                self.ending.push(holder);
            }
            if self.opens.has_any(*clientid) || self.delegations.has_any(*clientid) {
                self.ended.push_back(*clientid);
            }
        }
    }

    /// Whether clients that have ended still have opens.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Ends `left` opens, lock owners and delegations of ended clients, or all that there are. Adds what held files.
    /// The volume ends the clients' locks and share reservations.
    pub(super) fn end_some(&mut self, left: &mut usize, held: &mut Vec<H>) {
        while *left > 0
            && let Some(clientid) = self.ended.front()
        {
            *left -= 1;
            match (self.opens.first_of(*clientid), self.delegations.first_of(*clientid)) {
                (Some(id), _) => held.extend(self.end_open(id, None, left)),
                (None, Some(id)) => self.end_delegation(id),
                (None, None) => _ = self.ended.pop_front(),
            }
        }
    }
}

/// A lock owner for the volume, by its holder.
pub(super) fn lock_owner(holder: HolderId, number: u64) -> LockOwner {
    LockOwner { holder, number, family: LockFamily::Single }
}

#[cfg(test)]
mod tests;
